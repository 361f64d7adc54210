/// A value of a payload, or of one of a bundle's files: JSON (RFC 8259) and property lists have these in common.
public indirect enum PayloadValue: Hashable, Sendable {
    /// JSON's `null`, and whatever a property list holds that none of the others can be (data, dates).
    case null
    /// `true` or `false`.
    case boolean(Bool)
    /// Any number; whole ones are exact up to 2^53.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([PayloadValue])
    /// A dictionary; of members that share a key, the last.
    case object([String: PayloadValue])
    /// What was nested deeper than ``PayloadReader/maximumDepth`` and therefore not looked at.
    case unread

    /// The text, if it is one.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number, if it is one; `true` is none.
    public var double: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The whole number that this is, if it is one and fits.
    public var integer: Int? {
        double.flatMap { Int(exactly: $0) }
    }

    /// The members, if it is a dictionary.
    public var members: [String: PayloadValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The elements, if it is a list.
    public var elements: [PayloadValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// Whether this is the number 1, by which payloads say yes.
    public var isOne: Bool { double == 1 }

    /// The text that this would be as an argument: numbers in digits, nothing for what has no text.
    public var argument: String {
        switch self {
        case .string(let text): text
        case .number(let number): Int(exactly: number).map(String.init) ?? String(number)
        case .boolean(let truth): truth ? "1" : "0"
        case .null, .array, .object, .unread: ""
        }
    }
}
