/// Escapes and cuts text of others, for a log and for a terminal: one line without control characters.
package enum LogText {
    /// The longest metadata value, in bytes of its escaped form.
    static let longestValue = 256
    /// The longest key of metadata, in bytes of its escaped form.
    static let longestKey = 64
    /// The longest message, in bytes of its escaped form.
    package static let longestMessage = 1024

    /// How special characters are escaped.
    package enum Spelling {
        /// `\n`, `\u{1b}`.
        case swift
        /// `\n`, `\u001b` (RFC 8259 §7).
        case json
        /// As in Swift, but quotes, backslashes, and what belongs to texts of some language stand for themselves.
        case terminal
    }

    /// The text with control, format and line-breaking characters escaped, cut at `limit` bytes.
    package static func escaped(_ text: String, limit: Int, spelling: Spelling = .swift) -> String {
        if isPlain(text), text.utf8.count <= limit { return text }
        var escaped = ""
        var length = 0
        var rest = text.unicodeScalars[...]
        while let scalar = rest.first {
            let flag = spelling == .terminal ? regionFlag(rest) : nil
            let piece = flag ?? piece(for: scalar, spelling)
            length += piece.utf8.count
            guard length <= limit else {
                escaped += "…"
                break
            }
            escaped += piece
            rest = rest.dropFirst(flag?.unicodeScalars.count ?? 1)
        }
        return escaped
    }

    /// A wrong value for its error; `…` for an address with a credential, a query or a fragment, which may be a secret.
    package static func shown(_ value: String) -> String {
        value.contains { "@?#".contains($0) } ? "…" : escaped(value, limit: 64)
    }

    /// A line for a terminal: none of its characters moves the cursor, or reorders what stands beside it.
    ///
    /// Escapes that are there already stay as they are.
    package static func line(_ text: String) -> String {
        escaped(text, limit: .max, spelling: .terminal)
    }

    /// A metadata value for `key=`, in quotes if it is not one word.
    package static func value(_ text: String) -> String {
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
        case _ where spelling == .terminal && isText(scalar): return String(scalar)
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

    /// The invisible characters that texts need: soft hyphen, vowel separator of Mongolian, places where a word may and may
    /// not break (Thai, Khmer), and the joiners of Persian, of Indian scripts and of emoji.
    private static let invisible: Set<Unicode.Scalar> = [
        "\u{AD}", "\u{180E}", "\u{200B}", "\u{200C}", "\u{200D}", "\u{2060}",
    ]

    /// Whether a character belongs to texts although its general category does not say so.
    ///
    /// These are the number signs of Arabic, joiners, and emoji that are newer than this program's tables. It does
    /// not hold for marks that turn the direction.
    private static func isText(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        switch properties.generalCategory {
        case .format, .privateUse, .unassigned:
            return invisible.contains(scalar)
                || !(properties.isBidiControl || properties.isDefaultIgnorableCodePoint
                    || properties.isNoncharacterCodePoint)
        default: return false
        }
    }

    /// The flag of a region, such as Scotland's, at the start of a text: a black flag, the code of the region in tags, and the
    /// tag that ends it (UTS #51, ED-14a).
    ///
    /// Tags are invisible. Outside of a flag they would hide a text.
    private static func regionFlag(_ text: Substring.UnicodeScalarView) -> String? {
        guard text.first == "\u{1F3F4}" else { return nil }
        let code = text.dropFirst().prefix { scalar in
            ("\u{E0030}"..."\u{E0039}").contains(scalar) || ("\u{E0061}"..."\u{E007A}").contains(scalar)
        }
        // A subdivision of CLDR has three to seven characters.
        guard (3...7).contains(code.count), text[code.endIndex...].first == "\u{E007F}" else { return nil }
        return String(text[...code.endIndex])
    }

    private static func hex(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
