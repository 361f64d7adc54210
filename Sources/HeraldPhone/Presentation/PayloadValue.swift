/// A value of JSON (RFC 8259) or of a property list.
public indirect enum PayloadValue: Hashable, Sendable {
    /// JSON's `null`, and the other types of property lists (data, dates).
    case null
    /// `true` or `false`.
    case boolean(Bool)
    /// A number; integers are exact up to 2^53.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([PayloadValue])
    /// A dictionary. Of members with the same key, the last counts.
    case object([String: PayloadValue])
    /// A value nested deeper than ``PayloadReader/maximumDepth``, which was not read.
    case unread

    /// The string; nil for other types.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number; nil for other types, also for `true`.
    public var double: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The integer; nil for other values.
    public var integer: Int? {
        double.flatMap { Int(exactly: $0) }
    }

    /// The members of a dictionary; nil for other types.
    public var members: [String: PayloadValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The elements of an array; nil for other types.
    public var elements: [PayloadValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// Whether this is the number 1, which means yes in payloads.
    public var isOne: Bool { double == 1 }

    /// The value as an argument of a format string.
    public var argument: String {
        switch self {
        case .string(let text): text
        case .number(let number): Int(exactly: number).map(String.init) ?? String(number)
        case .boolean(let truth): truth ? "1" : "0"
        case .null, .array, .object, .unread: ""
        }
    }
}

extension PayloadValue: Codable {
    /// Decodes any JSON.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let truth = try? container.decode(Bool.self) {
            self = .boolean(truth)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .string(text)
        } else if let elements = try? container.decode([PayloadValue].self) {
            self = .array(elements)
        } else {
            self = .object(try container.decode([String: PayloadValue].self))
        }
    }

    /// Encodes the value as JSON; an unread value as null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null, .unread: try container.encodeNil()
        case .boolean(let truth): try container.encode(truth)
        case .number(let number):
            if let whole = Int(exactly: number) { try container.encode(whole) } else { try container.encode(number) }
        case .string(let text): try container.encode(text)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }
}
