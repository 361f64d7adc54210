import HeraldMailbox
import HeraldModel

/// A line of the journal as it lies on disk: nine words of eight bytes, little-endian.
///
/// Never change it.
///
/// | word | holds |
/// |---|---|
/// | 0 | time, milliseconds since 1970 |
/// | 1, 2 | the provider's identifier |
/// | 3, 4 | the service's identifier |
/// | 5 | device number |
/// | 6 | app number × 2³², plus state × 2⁸, plus 1 if there is a replacement |
/// | 7, 8 | the replacement's identifier, or zero; in the line of a broadcast that was sent, to how many devices |
enum JournalRecord {
    static let wordCount = 9
    static let byteCount = wordCount * 8

    /// Eight bytes that stand for an identifier in a search; what they find is compared in full.
    static func fingerprint(_ id: NotificationID) -> UInt64 {
        (id.high &* 0x9E37_79B9_7F4A_7C15) ^ id.low
    }

    static func append(_ event: JournalEvent, to words: inout [UInt64]) {
        words.append(UInt64(bitPattern: event.time.milliseconds).littleEndian)
        words.append(event.id.high.littleEndian)
        words.append(event.id.low.littleEndian)
        words.append(event.uniqueID.high.littleEndian)
        words.append(event.uniqueID.low.littleEndian)
        words.append(event.slot.device.value.littleEndian)
        let flags: UInt64 = event.replacement == nil ? 0 : 1
        let word = UInt64(event.slot.app.value) << 32 | UInt64(event.state.rawValue) << 8 | flags
        words.append(word.littleEndian)
        words.append((event.replacement?.high ?? 0).littleEndian)
        words.append((event.replacement?.low ?? 0).littleEndian)
    }

    /// Reads the record at a position.
    /// - Returns: nil if there is none, or it makes no sense.
    static func read(_ bytes: UnsafeRawBufferPointer, at index: Int) -> JournalEvent? {
        guard index >= 0, index < bytes.count / byteCount else { return nil }
        let start = index * byteCount
        func word(_ number: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start + number * 8, as: UInt64.self))
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

/// Lines on their way to disk.
struct JournalLines {
    /// A page larger than this would be slow to take apart in a search.
    static let perPage = 4096
    /// How many bytes a line takes: its record and its two fingerprints.
    static let bytesPerLine = JournalRecord.byteCount + 16

    /// Two for each line: of the provider's identifier and of the service's.
    private(set) var fingerprints: [UInt64] = []
    private(set) var words: [UInt64] = []
    private(set) var times: [Int64] = []

    var count: Int { times.count }

    mutating func append(_ event: JournalEvent) {
        fingerprints.append(JournalRecord.fingerprint(event.id).littleEndian)
        fingerprints.append(JournalRecord.fingerprint(event.uniqueID).littleEndian)
        JournalRecord.append(event, to: &words)
        times.append(event.time.milliseconds)
    }

    mutating func removeAll() {
        fingerprints.removeAll(keepingCapacity: true)
        words.removeAll(keepingCapacity: true)
        times.removeAll(keepingCapacity: true)
    }
}
