/// A value of JSON (RFC 8259).
///
/// Numbers keep the text in which they were written, and objects keep the order of their members. So nothing is lost between
/// reading and writing.
public enum JSON: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case boolean(Bool)
    /// A number.
    case number(Number)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object.
    case object(Object)

    /// The string; nil for other types.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The truth value; nil for other types, also for the numbers 0 and 1.
    public var truth: Bool? {
        if case .boolean(let truth) = self { truth } else { nil }
    }

    /// The number; nil for other types, also for `true`.
    public var number: Number? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The number as a `Double`; nil for other types, and for a number beyond the range of `Double`.
    public var double: Double? {
        number?.double
    }

    /// The integer; nil for other types, for a number with a fraction, and for one beyond the range of `Int`.
    public var integer: Int? {
        number?.exactly(Int.self)
    }

    /// The members of an object; nil for other types.
    public var members: Object? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The elements of an array; nil for other types.
    public var elements: [JSON]? {
        if case .array(let elements) = self { elements } else { nil }
    }
}
