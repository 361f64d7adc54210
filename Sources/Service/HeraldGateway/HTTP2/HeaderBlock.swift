import NIOCore

/// The header block that the peer is sending: counts its bytes and collects the fields of a request.
struct HeaderBlock {
    private let maximumBytes: Int
    private let timeout: TimeAmount
    /// The request of the block; nil between blocks and in blocks that are ignored.
    private var request: PendingRequest?
    private var byteCount = 0
    /// When the block must end; nil between blocks.
    private(set) var deadline: NIODeadline?

    init(_ limits: HTTP2Limits) {
        maximumBytes = limits.headerBlockBytes
        timeout = TimeAmount(limits.headerBlockTimeout)
    }

    /// Begins a block; without a request its fields are counted and ignored.
    mutating func begin(for request: PendingRequest?, now: NIODeadline) {
        self.request = request
        byteCount = 0
        deadline = now + timeout
    }

    /// The outcome of a field.
    enum Outcome {
        case added
        /// The request is malformed (RFC 9113 §8.1.1).
        case malformed
        case tooLarge
    }

    /// Adds a field, at 32 bytes more than its own (RFC 9113 §6.5.2).
    mutating func add(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        isMalformed: Bool
    ) -> Outcome {
        byteCount += name.count + value.count + 32
        guard byteCount <= maximumBytes else { return .tooLarge }
        let field = RequestField(name: name)
        // Herald answers a malformed field of its own with the reason.
        if isMalformed, field?.hasReason != true, Self.isForbidden(name, value) { return .malformed }
        if let request, let field { request.fields.note(field, value, isMalformed: isMalformed) }
        return .added
    }

    /// Whether RFC 9113 §8.2.1 forbids a field; the library is stricter.
    private static func isForbidden(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        let spaces: [UInt8?] = [UInt8(ascii: " "), UInt8(ascii: "\t")]
        return name.isEmpty || name.contains { $0 <= UInt8(ascii: " ") || $0 >= 0x7F || $0 == UInt8(ascii: ":") }
            || value.contains { $0 == 0 || $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
            || spaces.contains(value.first) || spaces.contains(value.last)
    }

    mutating func end() {
        request = nil
        deadline = nil
    }
}
