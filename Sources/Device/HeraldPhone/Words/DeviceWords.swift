/// A text of the device's own interface, which belongs to no app.
///
/// The raw value is its key in the JSON of ``DeviceWords``. In braces stand the parts that a view fills in.
package enum DeviceWord: String, Hashable, Sendable, CaseIterable {
    // MARK: - Buttons

    case close, view, send, allow, unlock
    case dontAllow = "dont_allow"
    case clearAll = "clear_all"
    case showAll = "show_all"
    case showLess = "show_less"
    /// `{count}` notifications of `{app}` are folded away.
    case moreFrom = "more_from"

    // MARK: - Screens

    case home, notifications, locked
    case homeScreen = "home_screen"
    case noNotifications = "no_notifications"

    // MARK: - Cards

    case updated, critical, passive
    case timeSensitive = "time_sensitive"
    case defaultSound = "default_sound"

    // MARK: - Live Activities

    case live, outdated, ended
    case liveActivities = "live_activities"
    /// It is outdated from or since `{time}`.
    case outdatedFrom = "outdated_from"
    case outdatedSince = "outdated_since"
    /// It is removed at `{time}`.
    case removedAt = "removed_at"

    // MARK: - The permission request of `{app}`

    case asksPermission = "asks_permission"
    case chooseKinds = "choose_kinds"
    case alerts, badges, sounds

    // MARK: - Signs of the status bar

    case muted, focus, saving, connected
    case notConnected = "not_connected"
}

/// The words of the device's own interface in one language.
///
/// Its JSON is an object with the member `language` and a member for each word.
public struct DeviceWords: Hashable, Sendable {
    /// The language, as a tag of RFC 5646.
    public let language: String
    /// The text of each word.
    package let texts: [DeviceWord: String]

    /// The languages of the interface, English first.
    package static let languages = ["en", "fr", "de", "es", "ja", "zh-Hans"]

    /// Chooses the first of the user's languages that the interface has; else English.
    /// - Parameter preferences: The user's languages, in order of preference.
    package init(for preferences: [String]) {
        let chosen = LanguageChoice.choose(from: Self.languages, preferences: preferences, development: "en") ?? "en"
        language = chosen
        texts =
            switch chosen {
            case "fr": Self.french
            case "de": Self.german
            case "es": Self.spanish
            case "ja": Self.japanese
            case "zh-Hans": Self.chinese
            default: Self.english
            }
    }

    /// The text of a word.
    package subscript(word: DeviceWord) -> String { texts[word] ?? word.rawValue }
}

extension DeviceWords: Codable {
    private static let languageKey = "language"

    /// Reads the object.
    public init(from decoder: any Decoder) throws {
        let members = try [String: String](from: decoder)
        language = members[Self.languageKey] ?? "en"
        texts = Dictionary(
            uniqueKeysWithValues: DeviceWord.allCases.compactMap { word in members[word.rawValue].map { (word, $0) } }
        )
    }

    /// Writes the object.
    public func encode(to encoder: any Encoder) throws {
        var members = [Self.languageKey: language]
        for (word, text) in texts { members[word.rawValue] = text }
        try members.encode(to: encoder)
    }
}
