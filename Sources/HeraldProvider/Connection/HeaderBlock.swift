/// Header fields of one request in one buffer, built on the sender's thread to keep work off the event loop.
struct HeaderBlock: Sendable {
    struct Field: Sendable {
        let name: StaticString
        let start: Int
        let count: Int
        /// Whether HPACK may add it to the dynamic table; identifiers and paths never repeat.
        let isIndexed: Bool
    }

    private(set) var fields: [Field] = []
    private(set) var values: [UInt8] = []
    /// The first field with a character that no header field may contain (RFC 9113 §8.2.1).
    private(set) var malformed: StaticString?

    init() {
        fields.reserveCapacity(12)
        values.reserveCapacity(512)
    }

    mutating func add(_ name: StaticString, _ value: some Sequence<UInt8>, isIndexed: Bool = true) {
        let start = values.count
        values.append(contentsOf: value)
        fields.append(Field(name: name, start: start, count: values.count - start, isIndexed: isIndexed))
        let value = values[start...]
        let isBroken = value.contains { $0 < 0x20 || $0 == 0x7F } || value.first == 0x20 || value.last == 0x20
        if isBroken, malformed == nil { malformed = name }
    }

    mutating func add(_ name: StaticString, _ value: String, isIndexed: Bool = true) {
        add(name, value.utf8, isIndexed: isIndexed)
    }

    /// The fields as text, for tests; never log them: one may be a provider token.
    var lines: [String] {
        fields.map { field in
            "\(field.name): \(String(decoding: values[field.start..<field.start + field.count], as: UTF8.self))"
        }
    }
}
