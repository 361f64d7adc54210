import HeraldMailbox
import HeraldModel

/// A row of the journal as Herald wrote it until the fourth format: records of nine words of eight bytes, little-endian,
/// and in a column of their own what once stood for their identifiers in a search.
///
/// Such rows are read until their time is over.
///
/// | word | holds |
/// |---|---|
/// | 0 | time, milliseconds since 1970 |
/// | 1, 2 | the provider's identifier |
/// | 3, 4 | the service's identifier |
/// | 5 | device number |
/// | 6 | app number × 2³², plus state × 2⁸, plus 1 if there is a replacement |
/// | 7, 8 | the replacement's identifier, or zero; in the line of a broadcast that was sent, to how many devices |
enum FormerJournalRow {
    static let recordLength = 72

    /// Hands every line to `body`, oldest first, up to one that makes no sense.
    /// - Returns: Whether all made sense.
    static func read(_ events: UnsafeRawBufferPointer, _ body: (JournalEvent) -> Void) -> Bool {
        for start in stride(from: 0, to: events.count - recordLength + 1, by: recordLength) {
            guard let event = event(UnsafeRawBufferPointer(rebasing: events[start..<start + recordLength])) else {
                return false
            }
            body(event)
        }
        return events.count % recordLength == 0
    }

    private static func event(_ record: UnsafeRawBufferPointer) -> JournalEvent? {
        func word(_ number: Int) -> UInt64 {
            UInt64(littleEndian: record.loadUnaligned(fromByteOffset: number * 8, as: UInt64.self))
        }
        let mixed = word(6)
        guard mixed & 0xFFFF_00FE == 0, let state = JournalState(rawValue: UInt8(truncatingIfNeeded: mixed >> 8))
        else { return nil }
        return JournalEvent(
            time: WallTime(milliseconds: Int64(bitPattern: word(0))),
            id: NotificationID(high: word(1), low: word(2)),
            uniqueID: NotificationID(high: word(3), low: word(4)),
            slot: Slot(
                device: DeviceNumber(word(5)),
                app: AppNumber(UInt32(truncatingIfNeeded: mixed >> 32))
            ),
            state: state,
            replacement: mixed & 1 == 1 ? NotificationID(high: word(7), low: word(8)) : nil
        )
    }
}
