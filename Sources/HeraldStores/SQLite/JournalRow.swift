import HeraldMailbox
import HeraldModel

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Lines of the journal as they lie on disk, in one row: oldest first, and at the end eight bytes of ``Checksum`` over all of
/// them.
///
/// What is left out of a line is as in the line before. What one commit does about one notification (received, stored, the
/// older one replaced) stands together, and these three lines take some 85 bytes instead of 264.
///
/// Never change it. Of each line:
///
/// | bytes | hold |
/// |---|---|
/// | 1 | the state |
/// | 1 | which of what follows is there (``Parts``) |
/// | 1 to 10 | the time: milliseconds since that of the line before, in the first since 1970 |
/// | 8, 1 to 5 | device number, app number |
/// | 16 | the provider's identifier |
/// | 16 | the service's identifier |
/// | 16 | the replacement's identifier; in the line of a broadcast that was sent, to how many devices |
///
/// Numbers have seven bits a byte, lowest first, and the eighth set where another byte follows; the time may go back, so it
/// is doubled, and told as the complement of that if it is negative. Device numbers, identifiers and checksum are
/// little-endian, of an identifier the upper eight bytes first.
struct JournalRow {
    private struct Parts: OptionSet {
        let rawValue: UInt8

        static let slot = Parts(rawValue: 1)
        static let id = Parts(rawValue: 2)
        static let uniqueID = Parts(rawValue: 4)
        static let replacement = Parts(rawValue: 8)
        /// The notification of the line before is the replacement.
        static let isReplacedByLast = Parts(rawValue: 16)

        static let all: Parts = [.slot, .id, .uniqueID, .replacement, .isReplacedByLast]
    }

    /// More in one row would be slow to take apart in a search.
    static let lineLimit = 4096
    private static let longestLine = 2 + 10 + 8 + 5 + 3 * 16
    private static let checksumLength = 8

    private(set) var count = 0
    var isFull: Bool { count >= JournalRow.lineLimit }
    /// Of the lines, milliseconds since 1970.
    private(set) var firstTime = Int64.max
    private(set) var lastTime = Int64.min
    private var lines: [UInt8] = []
    private var last: JournalEvent?

    mutating func append(_ event: JournalEvent) {
        withUnsafeTemporaryAllocation(byteCount: JournalRow.longestLine, alignment: 1) { room in
            var line = LineWriter(room)
            var parts: Parts = []
            if event.slot != last?.slot { parts.insert(.slot) }
            if event.id != last?.id { parts.insert(.id) }
            if event.uniqueID != last?.uniqueID { parts.insert(.uniqueID) }
            if let replacement = event.replacement {
                parts.insert(replacement == last?.id ? .isReplacedByLast : .replacement)
            }
            line.add(byte: event.state.rawValue)
            line.add(byte: parts.rawValue)
            line.add(difference: event.time.milliseconds &- (last?.time.milliseconds ?? 0))
            if parts.contains(.slot) {
                line.add(word: event.slot.device.value)
                line.add(number: UInt64(event.slot.app.value))
            }
            if parts.contains(.id) { line.add(event.id) }
            if parts.contains(.uniqueID) { line.add(event.uniqueID) }
            if parts.contains(.replacement), let replacement = event.replacement { line.add(replacement) }
            lines.append(contentsOf: line.written)
        }
        count += 1
        firstTime = min(firstTime, event.time.milliseconds)
        lastTime = max(lastTime, event.time.milliseconds)
        last = event
    }

    /// What lies on disk.
    var bytes: [UInt8] {
        let sum = lines.withUnsafeBytes { JournalRow.checksum($0) }
        return lines + withUnsafeBytes(of: sum.littleEndian) { Array($0) }
    }

    /// Whether one of the lines may be about a notification: the first of a row's lines that has an identifier spells it.
    ///
    /// A search takes only such rows apart. This compares where the first byte is right: one place in 256, if identifiers are
    /// random.
    static func mayTell(of id: NotificationID, _ bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeBytes(of: (id.high.littleEndian, id.low.littleEndian)) { spelling in
            guard let wanted = spelling.baseAddress, var place = bytes.baseAddress else { return false }
            let end = place + bytes.count
            while end - place >= spelling.count {
                guard let next = memchr(place, CInt(spelling[0]), end - place - spelling.count + 1) else {
                    return false
                }
                if memcmp(next, wanted, spelling.count) == 0 { return true }
                place = UnsafeRawPointer(next) + 1
            }
            return false
        }
    }

    /// Hands every line of a row to `body`, oldest first.
    ///
    /// None if the checksum is wrong.
    /// - Returns: Whether all of it makes sense.
    static func read(_ bytes: UnsafeRawBufferPointer, _ body: (JournalEvent) -> Void) -> Bool {
        guard bytes.count > checksumLength else { return false }
        let lines = UnsafeRawBufferPointer(rebasing: bytes.dropLast(checksumLength))
        let sum = bytes.loadUnaligned(fromByteOffset: lines.count, as: UInt64.self)
        guard UInt64(littleEndian: sum) == checksum(lines) else { return false }
        var reader = LineReader(lines)
        var last: JournalEvent?
        while !reader.isAtEnd {
            guard let event = line(&reader, after: last) else { return false }
            body(event)
            last = event
        }
        return true
    }

    private static func line(_ reader: inout LineReader, after last: JournalEvent?) -> JournalEvent? {
        guard let state = reader.byte().flatMap(JournalState.init(rawValue:)),
            let parts = reader.byte().map(Parts.init(rawValue:)), parts.isSubset(of: .all),
            let difference = reader.difference(),
            let slot = parts.contains(.slot) ? reader.slot() : last?.slot,
            let id = parts.contains(.id) ? reader.id() : last?.id,
            let uniqueID = parts.contains(.uniqueID) ? reader.id() : last?.uniqueID
        else { return nil }
        let replacement =
            parts.contains(.replacement) ? reader.id() : parts.contains(.isReplacedByLast) ? last?.id : nil
        guard replacement != nil || parts.isDisjoint(with: [.replacement, .isReplacedByLast]) else { return nil }
        return JournalEvent(
            time: WallTime(milliseconds: (last?.time.milliseconds ?? 0) &+ difference),
            id: id,
            uniqueID: uniqueID,
            slot: slot,
            state: state,
            replacement: replacement
        )
    }

    private static func checksum(_ lines: UnsafeRawBufferPointer) -> UInt64 {
        var sum = Checksum()
        sum.add(lines)
        return sum.value
    }
}

/// Writes a line into room for the longest.
private struct LineWriter {
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0

    init(_ room: UnsafeMutableRawBufferPointer) {
        self.room = room
    }

    var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[..<count]) }

    mutating func add(byte: UInt8) {
        room[count] = byte
        count += 1
    }

    mutating func add(number: UInt64) {
        var rest = number
        while rest > 0x7F {
            add(byte: UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        add(byte: UInt8(truncatingIfNeeded: rest))
    }

    mutating func add(difference: Int64) {
        add(number: UInt64(bitPattern: (difference << 1) ^ (difference >> 63)))
    }

    mutating func add(word: UInt64) {
        room.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
        count += 8
    }

    mutating func add(_ id: NotificationID) {
        add(word: id.high)
        add(word: id.low)
    }
}

/// Takes lines apart; what it gives is nil where there is no such thing.
private struct LineReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func byte() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func number() -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: 0 as UInt64, through: 63, by: 7) {
            guard let byte = byte() else { return nil }
            let bits = UInt64(byte & 0x7F)
            // The tenth byte has room for one bit.
            guard (bits << shift) >> shift == bits else { return nil }
            number |= bits << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }

    mutating func difference() -> Int64? {
        number().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    mutating func slot() -> Slot? {
        guard let device = word(), let app = number().flatMap(UInt32.init(exactly:)) else { return nil }
        return Slot(device: DeviceNumber(device), app: AppNumber(app))
    }

    mutating func word() -> UInt64? {
        guard offset + 8 <= bytes.count else { return nil }
        defer { offset += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    mutating func id() -> NotificationID? {
        guard let high = word(), let low = word() else { return nil }
        return NotificationID(high: high, low: low)
    }
}
