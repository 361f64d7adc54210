import HeraldMailbox
import HeraldModel

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Journal events in one row: oldest first, then eight bytes of ``Checksum`` over all of them.
///
/// An event leaves out the fields that are equal to those of the event before it. The events of one notification in one
/// commit (received, stored, the older one replaced) are neighbours, and take some 85 bytes instead of 264.
///
/// The layout is part of the format. Each event has:
///
/// | bytes | content |
/// |---|---|
/// | 1 | state |
/// | 1 | the fields that follow (``Fields``) |
/// | 1 to 10 | time: milliseconds since the event before; in the first event since 1970 |
/// | 8, 1 to 5 | device number (0 for the subscribers of a channel), app number |
/// | 16 | the provider's identifier |
/// | 16 | the service's identifier |
/// | 16 | the replacement's identifier; for a broadcast that was sent, its number of devices |
///
/// Numbers are base-128 varints, lowest bits first; time differences are signed with zigzag encoding. Device numbers,
/// identifiers and checksum are little-endian; an identifier has its upper eight bytes first.
struct JournalRow {
    private struct Fields: OptionSet {
        let rawValue: UInt8

        static let slot = Fields(rawValue: 1)
        static let id = Fields(rawValue: 2)
        static let uniqueID = Fields(rawValue: 4)
        static let detail = Fields(rawValue: 8)
        /// The notification of the event before is the replacement.
        static let isReplacedByLast = Fields(rawValue: 16)

        static let all: Fields = [.slot, .id, .uniqueID, .detail, .isReplacedByLast]
    }

    /// The most events in one row, so that a search reads any row quickly.
    static let eventLimit = 4096
    private static let longestEvent = 2 + 10 + 8 + 5 + 3 * 16
    private static let checksumLength = 8
    /// The device number of an event about a broadcast.
    fileprivate static let noDevice: UInt64 = 0

    private(set) var count = 0
    var isFull: Bool { count >= JournalRow.eventLimit }
    /// The earliest and latest time of the events, milliseconds since 1970.
    private(set) var firstTime = Int64.max
    private(set) var lastTime = Int64.min
    private var content: [UInt8] = []
    private var last: JournalEvent?

    mutating func append(_ event: JournalEvent) {
        withUnsafeTemporaryAllocation(byteCount: JournalRow.longestEvent, alignment: 1) { room in
            var writer = EventWriter(room)
            var fields: Fields = []
            if event.app != last?.app || event.recipient != last?.recipient { fields.insert(.slot) }
            if event.id != last?.id { fields.insert(.id) }
            if event.uniqueID != last?.uniqueID { fields.insert(.uniqueID) }
            switch event.detail {
            case nil: break
            case .replacement(let newer): fields.insert(newer == last?.id ? .isReplacedByLast : .detail)
            case .subscriberCount: fields.insert(.detail)
            }
            writer.add(byte: event.state.rawValue)
            writer.add(byte: fields.rawValue)
            writer.add(difference: event.time.milliseconds &- (last?.time.milliseconds ?? 0))
            if fields.contains(.slot) {
                writer.add(word: event.device?.value ?? JournalRow.noDevice)
                writer.add(number: UInt64(event.app.value))
            }
            if fields.contains(.id) { writer.add(event.id) }
            if fields.contains(.uniqueID) { writer.add(event.uniqueID) }
            if fields.contains(.detail), let detail = event.detail { writer.add(detail) }
            content.append(contentsOf: writer.written)
        }
        count += 1
        firstTime = min(firstTime, event.time.milliseconds)
        lastTime = max(lastTime, event.time.milliseconds)
        last = event
    }

    /// The stored form.
    var bytes: [UInt8] {
        let sum = content.withUnsafeBytes { JournalRow.checksum($0) }
        return content + withUnsafeBytes(of: sum.littleEndian) { Array($0) }
    }

    /// Whether a row may have events of a notification: the first event with an identifier has all its bytes.
    ///
    /// A search decodes only such rows. The comparison runs where the first byte matches: at one byte in 256, if
    /// identifiers are random.
    static func mayContain(_ id: NotificationID, _ bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeBytes(of: (id.high.littleEndian, id.low.littleEndian)) { pattern in
            guard let wanted = pattern.baseAddress, var start = bytes.baseAddress else { return false }
            let end = start + bytes.count
            while end - start >= pattern.count {
                guard let next = memchr(start, CInt(pattern[0]), end - start - pattern.count + 1) else {
                    return false
                }
                if memcmp(next, wanted, pattern.count) == 0 { return true }
                start = UnsafeRawPointer(next) + 1
            }
            return false
        }
    }

    /// Decodes the events of a row, oldest first; none if the checksum is wrong.
    /// - Returns: Whether the whole row is valid.
    static func read(_ bytes: UnsafeRawBufferPointer, _ body: (JournalEvent) -> Void) -> Bool {
        guard bytes.count > checksumLength else { return false }
        let content = UnsafeRawBufferPointer(rebasing: bytes.dropLast(checksumLength))
        let sum = bytes.loadUnaligned(fromByteOffset: content.count, as: UInt64.self)
        guard UInt64(littleEndian: sum) == checksum(content) else { return false }
        var reader = EventReader(content)
        var last: JournalEvent?
        while !reader.isAtEnd {
            guard let event = event(&reader, after: last) else { return false }
            body(event)
            last = event
        }
        return true
    }

    private static func event(_ reader: inout EventReader, after last: JournalEvent?) -> JournalEvent? {
        guard let state = reader.byte().flatMap(JournalState.init(rawValue:)),
            let fields = reader.byte().map(Fields.init(rawValue:)), fields.isSubset(of: .all),
            let difference = reader.difference(),
            let slot = fields.contains(.slot) ? reader.slot() : last.map({ ($0.recipient, $0.app) }),
            let id = fields.contains(.id) ? reader.id() : last?.id,
            let uniqueID = fields.contains(.uniqueID) ? reader.id() : last?.uniqueID
        else { return nil }
        let other = fields.contains(.detail) ? reader.id() : fields.contains(.isReplacedByLast) ? last?.id : nil
        guard other != nil || fields.isDisjoint(with: [.detail, .isReplacedByLast]) else { return nil }
        return JournalEvent(
            time: WallTime(milliseconds: (last?.time.milliseconds ?? 0) &+ difference),
            id: id,
            uniqueID: uniqueID,
            recipient: slot.recipient,
            app: slot.app,
            state: state,
            detail: other.map { state == .sentToSubscribers ? .subscriberCount($0.low) : .replacement($0) }
        )
    }

    private static func checksum(_ content: UnsafeRawBufferPointer) -> UInt64 {
        var sum = Checksum()
        sum.add(content)
        return sum.value
    }
}

/// Encodes one event into a buffer for the longest.
private struct EventWriter {
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

    mutating func add(_ detail: JournalEvent.Detail) {
        switch detail {
        case .replacement(let id): add(id)
        case .subscriberCount(let count): add(NotificationID(high: 0, low: count))
        }
    }
}

/// Decodes events; every read returns nil at invalid or missing bytes.
private struct EventReader {
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
            // The tenth byte can hold one bit.
            guard (bits << shift) >> shift == bits else { return nil }
            number |= bits << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }

    mutating func difference() -> Int64? {
        number().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
    }

    mutating func slot() -> (recipient: JournalEvent.Recipient, app: AppNumber)? {
        guard let device = word(), let app = number().flatMap(UInt32.init(exactly:)) else { return nil }
        return (device == JournalRow.noDevice ? .subscribers : .device(DeviceNumber(device)), AppNumber(app))
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
