/// Whether a payload shows nothing: its `aps` holds `content-available` alone.
///
/// "It is an error to use this priority [10] for a push that contains only the content-available key" (Binary Provider
/// API).
enum SilentPayload {
    /// Reads a payload that is known to be a JSON object.
    static func isSilent(_ payload: [UInt8]) -> Bool {
        payload.withUnsafeBufferPointer { bytes in
            var scan = SilentScan(bytes: bytes)
            return scan.run()
        }
    }
}

/// One pass over well-formed JSON, which looks at keys only.
private struct SilentScan {
    let bytes: UnsafeBufferPointer<UInt8>
    var position = 0
    var depth = 0
    /// Whether the brackets that are open at depth 2 are those of `aps`.
    var isInAps = false
    var isAvailable = false
    var hasMore = false

    mutating func run() -> Bool {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth < 2 { isInAps = false }
                position += 1
            case UInt8(ascii: "\""):
                let text = string()
                if isKey() { note(text) }
            default:
                position += 1
            }
        }
        return isAvailable && !hasMore
    }

    /// What stands between two quotes, as it is written.
    private mutating func string() -> Range<Int> {
        position += 1
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        let end = min(position, bytes.count)
        position += 1
        return start..<end
    }

    private mutating func isKey() -> Bool {
        while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
        return position < bytes.count && bytes[position] == UInt8(ascii: ":")
    }

    private mutating func note(_ key: Range<Int>) {
        if depth == 1 {
            isInAps = bytes[key].elementsEqual("aps".utf8)
        } else if depth == 2, isInAps {
            if bytes[key].elementsEqual("content-available".utf8) { isAvailable = true } else { hasMore = true }
        }
    }
}
