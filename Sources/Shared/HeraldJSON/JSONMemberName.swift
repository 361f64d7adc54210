/// A type whose properties are members of JSON in snake case: `apnsID` is `apns_id`.
///
/// It needs no coding keys that say the same. The names of a dictionary stay as they are.
package protocol SnakeCaseJSON {}

/// The name of a member, as a coding key of errors and paths.
struct JSONMemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }

    /// The member of a property.
    init(_ property: some CodingKey, isSnakeCase: Bool) {
        stringValue = isSnakeCase ? Self.snakeCase(property.stringValue) : property.stringValue
    }

    /// `apns_id` for `apnsID`.
    private static func snakeCase(_ property: String) -> String {
        var name = ""
        var isInWord = false
        for character in property {
            if character.isUppercase, isInWord { name += "_" }
            isInWord = !character.isUppercase
            name += character.lowercased()
        }
        return name
    }

    /// The property of a member: `apnsID` for `apns_id`, and `deviceToken` for `device_token`.
    static func property<Key: CodingKey>(_ member: String, isSnakeCase: Bool) -> Key? {
        guard isSnakeCase else { return Key(stringValue: member) }
        let words = member.split(separator: "_", omittingEmptySubsequences: false)
        let rest = words.dropFirst().map { $0 == "id" ? "ID" : $0.prefix(1).uppercased() + $0.dropFirst() }
        let key = Key(stringValue: words[0] + rest.joined())
        return key.flatMap { Self($0, isSnakeCase: true).stringValue == member ? $0 : nil }
    }
}
