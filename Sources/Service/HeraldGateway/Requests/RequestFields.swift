#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The header fields that Herald reads; it ignores all others ("APNs ignores request headers it does not know").
enum RequestField: Int, CaseIterable {
    case method
    case path
    case authority
    case host
    case authorization
    case apnsID
    case apnsExpiration
    case apnsPriority
    case apnsTopic
    case apnsPushType
    case apnsCollapseID
    case apnsChannelID
    case apnsRequestID
    case heraldExplain
    case heraldTag

    /// The field with a name; HTTP/2 sends names in lower case (RFC 9113 §8.2.1).
    ///
    /// Compares lengths first, then bytes, without a string: it runs for every field of every request.
    init?(name: UnsafeBufferPointer<UInt8>) {
        let candidate: (RequestField, StaticString)
        switch name.count {
        case 4: candidate = (.host, "host")
        case 5: candidate = (.path, ":path")
        case 7: candidate = name[0] == UInt8(ascii: ":") ? (.method, ":method") : (.apnsID, "apns-id")
        case 10:
            candidate =
                switch name[0] {
                case UInt8(ascii: ":"): (.authority, ":authority")
                case UInt8(ascii: "a"): (.apnsTopic, "apns-topic")
                default: (.heraldTag, "herald-tag")
                }
        case 13:
            candidate =
                name[1] == UInt8(ascii: "u") ? (.authorization, "authorization") : (.apnsPriority, "apns-priority")
        case 14:
            candidate =
                name[0] == UInt8(ascii: "a") ? (.apnsPushType, "apns-push-type") : (.heraldExplain, "herald-explain")
        case 15:
            candidate =
                switch name[5] {
                case UInt8(ascii: "e"): (.apnsExpiration, "apns-expiration")
                case UInt8(ascii: "c"): (.apnsChannelID, "apns-channel-id")
                default: (.apnsRequestID, "apns-request-id")
                }
        case 16: candidate = (.apnsCollapseID, "apns-collapse-id")
        default: return nil
        }
        guard let start = name.baseAddress, memcmp(start, candidate.1.utf8Start, name.count) == 0 else { return nil }
        self = candidate.0
    }

    /// Whether a forbidden value is refused with a reason, and a second occurrence with `DuplicateHeaders`.
    ///
    /// Duplicate pseudo-header fields are malformed already (RFC 9113 §8.3), and `host` beside `:authority` is common.
    var hasReason: Bool {
        switch self {
        case .method, .path, .authority, .host, .heraldExplain, .heraldTag: false
        default: true
        }
    }
}

/// The header fields of one request, as bytes in one buffer that later requests reuse.
struct RequestFields {
    private struct Span {
        var offset: UInt32 = 0
        var count: UInt32 = 0
    }

    private var bytes: [UInt8] = []
    private var spans = [Span](repeating: Span(), count: RequestField.allCases.count)
    private var present: UInt32 = 0
    private var malformed: UInt32 = 0
    /// Whether a field that may occur once occurred twice.
    private(set) var hasDuplicates = false

    init() {}

    /// Adds a field; the first occurrence wins.
    ///
    /// A value with forbidden characters (RFC 9113 §8.2.1) is kept and marked, so that the request is refused. The HTTP/2
    /// layer would drop the field silently.
    mutating func note(_ field: RequestField, _ value: UnsafeBufferPointer<UInt8>, isMalformed: Bool = false) {
        let bit = UInt32(1) << UInt32(field.rawValue)
        guard present & bit == 0 else {
            hasDuplicates = hasDuplicates || field.hasReason
            return
        }
        present |= bit
        if isMalformed { malformed |= bit }
        spans[field.rawValue] = Span(
            offset: UInt32(truncatingIfNeeded: bytes.count),
            count: UInt32(truncatingIfNeeded: value.count)
        )
        bytes.append(contentsOf: value)
    }

    /// Removes all fields and keeps the memory.
    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        present = 0
        malformed = 0
        hasDuplicates = false
    }

    func has(_ field: RequestField) -> Bool {
        present & (1 << UInt32(field.rawValue)) != 0
    }

    /// Whether the field's value has forbidden characters.
    func isMalformed(_ field: RequestField) -> Bool {
        malformed & (1 << UInt32(field.rawValue)) != 0
    }

    /// Reads a field's value in place; nil if the request does not have the field.
    func withValue<Result>(
        of field: RequestField,
        _ read: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> Result? {
        guard has(field) else { return nil }
        let span = spans[field.rawValue]
        return try bytes.withUnsafeBytes { bytes in
            try read(UnsafeRawBufferPointer(rebasing: bytes[Int(span.offset)..<Int(span.offset) + Int(span.count)]))
        }
    }

    /// Whether the field has exactly this value.
    func value(of field: RequestField, is text: StaticString) -> Bool {
        withValue(of: field) { value in
            value.hasBytes(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        } ?? false
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both buffers have the same bytes, by one `memcmp`: tokens have hundreds.
    func hasBytes(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let start = baseAddress, let otherStart = other.baseAddress, count > 0 else { return true }
        return memcmp(start, otherStart, count) == 0
    }

    func hasBytes(_ other: [UInt8]) -> Bool {
        other.withUnsafeBytes { hasBytes($0) }
    }
}
