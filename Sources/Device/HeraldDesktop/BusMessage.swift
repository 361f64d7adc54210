/// A D-Bus message, as far as a client of the notification service needs it (D-Bus specification, "Message Protocol").
struct BusMessage: Hashable, Sendable {
    enum Kind: UInt8, Sendable {
        case call = 1
        case reply = 2
        case error = 3
        case signal = 4
    }

    var kind: Kind
    /// Assigned by the sender; never 0.
    var serial: UInt32
    var path: String?
    var interface: String?
    var member: String?
    /// The error's name, like `org.freedesktop.DBus.Error.ServiceUnknown`.
    var errorName: String?
    /// The call that this answers.
    var replyTo: UInt32?
    var destination: String?
    /// Filled in by the bus.
    var sender: String?
    /// The types of the body.
    var signature = ""
    var body: [UInt8] = []
    var isBigEndian = false

    var reader: BusReader { BusReader(body, isBigEndian: isBigEndian) }
}

extension BusMessage {
    /// The length of the fixed header: byte order, kind, flags, version, body length, serial, length of the fields.
    static let prefixBytes = 16
    private static let version: UInt8 = 1

    /// The codes of the header fields.
    private enum Field: UInt8 {
        case path = 1
        case interface = 2
        case member = 3
        case errorName = 4
        case replyTo = 5
        case destination = 6
        case sender = 7
        case signature = 8
    }

    var encoded: [UInt8] {
        var writer = BusWriter()
        writer.byte(UInt8(ascii: "l"))
        writer.byte(kind.rawValue)
        writer.byte(0)
        writer.byte(Self.version)
        writer.uint32(UInt32(clamping: body.count))
        writer.uint32(serial)
        writer.array(alignment: 8) { writer in
            func text(_ field: Field, _ type: String, _ value: String?) {
                guard let value else { return }
                writer.align(8)
                writer.byte(field.rawValue)
                writer.signature(type)
                if type == "g" { writer.signature(value) } else { writer.string(value) }
            }
            text(.path, "o", path)
            text(.interface, "s", interface)
            text(.member, "s", member)
            text(.errorName, "s", errorName)
            text(.destination, "s", destination)
            text(.signature, "g", signature.isEmpty ? nil : signature)
            if let replyTo {
                writer.align(8)
                writer.byte(Field.replyTo.rawValue)
                writer.signature("u")
                writer.uint32(replyTo)
            }
        }
        writer.align(8)
        return writer.bytes + body
    }

    /// The whole length of a message; nil while the fixed header is incomplete.
    /// - Throws: ``BusError`` for malformed messages, and messages longer than `limit`.
    static func length(of bytes: [UInt8], limit: Int) throws -> Int? {
        guard bytes.count >= prefixBytes else { return nil }
        guard let isBigEndian = isBigEndian(bytes), bytes[3] == version else {
            throw BusError("it does not speak D-Bus")
        }
        var reader = BusReader(bytes, isBigEndian: isBigEndian, position: 4)
        guard let body = reader.uint32(), reader.uint32() != nil, let fields = reader.uint32() else { return nil }
        let (head, length) = (UInt64(fields) + UInt64(prefixBytes), UInt64(body))
        let whole = (head + 7) / 8 * 8 + length
        guard whole <= limit else { throw BusError("it sends a message of \(whole) bytes") }
        return Int(whole)
    }

    /// Decodes a message; nil for an unknown kind, which the specification says to ignore.
    /// - Throws: ``BusError``.
    init?(_ bytes: [UInt8]) throws {
        let malformed = BusError("it sends a message that is not well-formed")
        guard bytes.count >= Self.prefixBytes, let isBigEndian = Self.isBigEndian(bytes) else { throw malformed }
        var reader = BusReader(bytes, isBigEndian: isBigEndian, position: 4)
        guard let length = reader.uint32(), let serial = reader.uint32(), let fields = reader.uint32() else {
            throw malformed
        }
        guard let kind = Kind(rawValue: bytes[1]) else { return nil }
        self.init(kind: kind, serial: serial)
        self.isBigEndian = isBigEndian
        let end = Self.prefixBytes + Int(fields)
        guard end <= bytes.count else { throw malformed }
        while reader.position < end {
            reader.align(8)
            guard let code = reader.byte(), let type = reader.signature() else { throw malformed }
            switch type {
            case "s", "o":
                guard let text = reader.string() else { throw malformed }
                set(Field(rawValue: code), text)
            case "g":
                guard let text = reader.signature() else { throw malformed }
                if code == Field.signature.rawValue { signature = text }
            case "u":
                guard let number = reader.uint32() else { throw malformed }
                if code == Field.replyTo.rawValue { replyTo = number }
            default: throw malformed
            }
            guard reader.position <= end else { throw malformed }
        }
        reader.align(8)
        guard reader.position + Int(length) == bytes.count else { throw malformed }
        body = Array(bytes[reader.position...])
    }

    private mutating func set(_ field: Field?, _ text: String) {
        switch field {
        case .path?: path = text
        case .interface?: interface = text
        case .member?: member = text
        case .errorName?: errorName = text
        case .destination?: destination = text
        case .sender?: sender = text
        case .replyTo?, .signature?, nil: break
        }
    }

    private static func isBigEndian(_ bytes: [UInt8]) -> Bool? {
        switch bytes[0] {
        case UInt8(ascii: "l"): false
        case UInt8(ascii: "B"): true
        default: nil
        }
    }
}
