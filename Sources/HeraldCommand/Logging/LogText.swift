/// Escapes and cuts text of others for a log: one line without control characters.
enum LogText {
    /// The longest metadata value, in bytes of its escaped form.
    static let longestValue = 256
    /// The longest key of metadata, in bytes of its escaped form.
    static let longestKey = 64
    /// The longest message, in bytes of its escaped form.
    static let longestMessage = 1024

    /// How special characters are escaped.
    enum Spelling {
        /// `\n`, `\u{1b}`.
        case swift
        /// `\n`, `\u001b` (RFC 8259 §7).
        case json
        /// As in Swift, but quotes and backslashes stand for themselves.
        case terminal
    }

    /// The text with control, format and line-breaking characters escaped, cut at `limit` bytes.
    static func escaped(_ text: String, limit: Int, spelling: Spelling = .swift) -> String {
        if isPlain(text), text.utf8.count <= limit { return text }
        var escaped = ""
        var length = 0
        for scalar in text.unicodeScalars {
            let piece = piece(for: scalar, spelling)
            length += piece.utf8.count
            guard length <= limit else {
                escaped += "…"
                break
            }
            escaped += piece
        }
        return escaped
    }

    /// A metadata value for `key=`, in quotes if it is not one word.
    static func value(_ text: String) -> String {
        let escaped = escaped(text, limit: longestValue)
        let isWord = !escaped.isEmpty && !escaped.utf8.contains { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "=") }
        return isWord ? escaped : "\"\(escaped)\""
    }

    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    }

    private static func piece(for scalar: Unicode.Scalar, _ spelling: Spelling) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        case "\"": return spelling == .terminal ? "\"" : "\\\""
        case "\\": return spelling == .terminal ? "\\" : "\\\\"
        // Joins emoji; a terminal does nothing else with it.
        case "\u{200D}" where spelling == .terminal: return String(scalar)
        default: break
        }
        switch scalar.properties.generalCategory {
        // Format characters turn the direction of what follows, or hide; they are as foreign to a log as controls.
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            return switch spelling {
            case .swift, .terminal: "\\u{\(String(scalar.value, radix: 16))}"
            case .json: String(scalar).utf16.map { "\\u" + hex($0) }.joined()
            }
        default:
            return String(scalar)
        }
    }

    private static func hex(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
