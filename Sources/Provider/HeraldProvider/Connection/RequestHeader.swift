/// Header fields of one request in one buffer, built on the sender's thread to keep work off the event loop.
struct RequestHeader: Sendable {
    struct Field: Sendable {
        let name: StaticString
        let start: Int
        let count: Int
        /// Whether HPACK may add it to the dynamic table; identifiers and paths never repeat.
        let isIndexed: Bool
    }

    private(set) var fields: [Field] = []
    private(set) var values: [UInt8] = []
    /// The fault of the first field with an invalid value, in words.
    private(set) var fault: String?

    init() {
        fields.reserveCapacity(12)
        values.reserveCapacity(320)
    }

    mutating func add(_ name: StaticString, _ value: String, isIndexed: Bool = true) {
        add(name, isIndexed: isIndexed) { $0.append(contentsOf: value.utf8) }
    }

    /// Adds a field whose value `write` appends to a buffer.
    mutating func add(_ name: StaticString, isIndexed: Bool = true, _ write: (inout [UInt8]) -> Void) {
        let start = values.count
        write(&values)
        fields.append(Field(name: name, start: start, count: values.count - start, isIndexed: isIndexed))
        // RFC 9113 §8.2.1
        if Self.isMalformed(values[start...]) {
            refuse("the value of \(name) has a character that no header field may contain")
        }
    }

    /// Notes an invalid value; the request is not sent.
    mutating func refuse(_ fault: String) {
        if self.fault == nil { self.fault = fault }
    }

    private static func isMalformed(_ value: ArraySlice<UInt8>) -> Bool {
        value.contains { $0 < 0x20 || $0 == 0x7F } || value.first == 0x20 || value.last == 0x20
    }
}
