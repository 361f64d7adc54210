/// The header fields of one request, laid end to end: one allocation for all values, made where the request is made and
/// not on the connection's event loop.
struct HeaderBlock: Sendable {
    struct Field: Sendable {
        let name: StaticString
        let start: Int
        let count: Int
        /// Whether the service's header table may keep it: no two notifications have the same identifier or path.
        let isIndexed: Bool
    }

    private(set) var fields: [Field] = []
    private(set) var values: [UInt8] = []
    /// The first field whose value no header can have (RFC 9113 §8.2.1).
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

    /// The fields as text, for tests and for nothing that is logged: one may be a provider token.
    var lines: [String] {
        fields.map { field in
            "\(field.name): \(String(decoding: values[field.start..<field.start + field.count], as: UTF8.self))"
        }
    }
}
