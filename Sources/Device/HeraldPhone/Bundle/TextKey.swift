/// The key of a text, compared by code units as the system does.
///
/// `String` compares canonically equivalent texts as equal. So a key with `é` as one code point would find a text whose key has
/// it as two, which a phone does not find.
public struct TextKey: Hashable, Comparable, Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
    /// The key.
    public let text: String

    /// Creates a key.
    public init(_ text: String) {
        self.text = text
    }

    /// Creates a key from a literal.
    public init(stringLiteral text: String) {
        self.text = text
    }

    /// The key.
    public var description: String { text }

    /// Compares code units.
    public static func == (left: TextKey, right: TextKey) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Orders by code units.
    public static func < (left: TextKey, right: TextKey) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    /// Feeds the code units to a hasher.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
