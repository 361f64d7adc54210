/// A type whose coding keys are members in snake case: `apnsID` is `apns_id`, and `screenURL` is `screen_url`.
///
/// It holds for ``JSON/init(encoding:)`` and ``JSON/decode(_:)``, and for the type alone: the types of its members say it for
/// themselves.
public protocol SnakeCased {}

/// The spelling of a type's coding keys as members.
package enum KeySpelling {
    case asWritten
    case snakeCase

    package init(of type: any Any.Type) {
        self = type is any SnakeCased.Type ? .snakeCase : .asWritten
    }

    /// The member for a key.
    package func name(_ key: some CodingKey) -> String {
        self == .asWritten ? key.stringValue : Self.snakeCase(key.stringValue)
    }

    /// The key for a member; nil if the type has none.
    func key<Key: CodingKey>(_ name: String, of type: Key.Type) -> Key? {
        guard self == .snakeCase else { return Key(stringValue: name) }
        // The last word may be an abbreviation: `apnsId` or `apnsID`.
        var words = name.split(separator: "_", omittingEmptySubsequences: false)
        let (first, last) = (words.removeFirst(), words.popLast())
        let start = first + words.map(\.capitalizedFirst).joined()
        return [start + (last?.capitalizedFirst ?? ""), start + (last?.uppercased() ?? "")]
            .compactMap { Key(stringValue: $0) }
            .first { self.name($0) == name }
    }

    /// Writes an underscore before each capital letter that begins a word or an abbreviation.
    private static func snakeCase(_ name: String) -> String {
        var snake = ""
        var last: Character = "_"
        for character in name {
            if character.isUppercase, last != "_", !last.isUppercase { snake.append("_") }
            snake += character.lowercased()
            last = character
        }
        return snake
    }
}

extension Substring {
    fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
