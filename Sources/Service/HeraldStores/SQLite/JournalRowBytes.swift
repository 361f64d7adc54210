import HeraldMailbox
import HeraldModel

extension JournalEvent.Recipient {
    /// The device number of an event about a broadcast.
    private static let noDevice: UInt64 = 0
    /// The device number of a refused request without a known device; no device has it.
    private static let unknownDevice = UInt64.max

    init(storedNumber: UInt64) {
        switch storedNumber {
        case Self.noDevice: self = .subscribers
        case Self.unknownDevice: self = .nobody
        default: self = .device(DeviceNumber(storedNumber))
        }
    }

    /// The device number in the journal.
    var storedNumber: UInt64 {
        switch self {
        case .device(let device): device.value
        case .subscribers: Self.noDevice
        case .nobody: Self.unknownDevice
        }
    }
}

/// Encodes one event into a buffer, which has room for the longest.
struct JournalEventWriter {
    private let room: UnsafeMutableRawBufferPointer
    /// The offset after the written bytes.
    private(set) var end: Int

    init(_ room: UnsafeMutableRawBufferPointer, from start: Int) {
        self.room = room
        end = start
    }

    mutating func add(byte: UInt8) {
        room[end] = byte
        end += 1
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
        room.storeBytes(of: word.littleEndian, toByteOffset: end, as: UInt64.self)
        end += 8
    }

    mutating func add(_ id: NotificationID) {
        add(word: id.high)
        add(word: id.low)
    }

    /// Adds a refusal; nil for that of the refused request before.
    mutating func add(_ refusal: JournalRefusal?) {
        guard let refusal else { return add(byte: 0) }
        add(byte: refusal.reason.storedCode)
        add(byte: refusal.environment == .sandbox ? 1 : 0)
        add(text: refusal.explanation)
        add(text: refusal.topic ?? "")
    }

    private mutating func add(text: String) {
        add(number: UInt64(text.utf8.count))
        for byte in text.utf8 { add(byte: byte) }
    }

    mutating func add(_ detail: JournalEvent.Detail) {
        switch detail {
        case .replacement(let id): add(id)
        case .subscriberCount(let count): add(NotificationID(high: 0, low: count))
        case .refusal: break
        }
    }
}

/// Decodes events; every read returns nil at invalid or missing bytes.
struct JournalEventReader {
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
        return (JournalEvent.Recipient(storedNumber: device), AppNumber(app))
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

    /// A refusal, perhaps that of the refused request before.
    mutating func refusal(after last: JournalRefusal?) -> JournalRefusal? {
        guard let code = byte() else { return nil }
        guard code > 0 else { return last }
        guard let reason = RefusalReason(storedCode: code), let environment = byte(), environment <= 1,
            let explanation = text(upTo: JournalRefusal.longestExplanation),
            let topic = text(upTo: JournalRefusal.longestTopic)
        else { return nil }
        return JournalRefusal(
            reason: reason,
            explanation: explanation,
            topic: topic.isEmpty ? nil : topic,
            environment: environment == 1 ? .sandbox : .production
        )
    }

    private mutating func text(upTo longest: Int) -> String? {
        guard let count = number(), count <= UInt64(longest), offset + Int(count) <= bytes.count else { return nil }
        defer { offset += Int(count) }
        return String(validating: bytes[offset..<offset + Int(count)], as: UTF8.self)
    }
}
