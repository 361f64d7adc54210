/// A text of a bundle in one language.
public struct LocalizedText: Hashable, Sendable {
    /// The format string.
    public var format: String
    /// Whether it is the most general of several plural forms.
    ///
    /// Arguments of notifications are texts, which cannot select a form.
    public var isPlural = false
    /// The faults of its plural variables, in words that follow the key, for `herald check`.
    public var faults: [String] = []

    /// Creates a text.
    public init(format: String, isPlural: Bool = false, faults: [String] = []) {
        self.format = format
        self.isPlural = isPlural
        self.faults = faults
    }
}

/// The parts of an app bundle that affect the presentation of notifications.
public struct AppBundle: Hashable, Sendable {
    /// The bundle identifier (`CFBundleIdentifier`).
    public var identifier: String?
    /// The name under the icon.
    public var name: String?
    /// The development language (`CFBundleDevelopmentRegion`).
    public var developmentLanguage = "en"
    /// Whether silent notifications wake the app (`remote-notification` in `UIBackgroundModes`).
    public var wakesInBackground = false
    /// The launch image (`UILaunchImageFile`).
    public var launchImageFile: String?
    /// The texts by language and key.
    public var texts: [String: [TextKey: LocalizedText]] = [:]
    /// The keys that need no translation, because their text is the same in all languages, or unused.
    public var untranslatedKeys: Set<TextKey> = []
    /// The sounds by file name.
    public var sounds: [String: SoundFile] = [:]
    /// The sounds in the container's `Library/Sounds`, which have precedence over the bundle's.
    public var containerSounds: [String: SoundFile] = [:]
    /// The file names of images and storyboards, and the names of images in catalogs.
    public var images: Set<String> = []
    /// The categories by identifier.
    public var categories: [String: NotificationCategory] = [:]

    /// Creates an empty bundle.
    public init() {}

    /// The languages of its texts, sorted.
    public var languages: [String] { texts.keys.sorted() }

    /// The language for a user with these preferences.
    public func language(for preferences: [String]) -> String? {
        LanguageChoice.choose(from: languages, preferences: preferences, development: developmentLanguage)
    }

    /// The text of a key, in a language, else in the development language.
    public func text(_ key: String, in language: String?) -> LocalizedText? {
        let key = TextKey(key)
        return language.flatMap { texts[$0]?[key] } ?? self.language(for: []).flatMap { texts[$0]?[key] }
    }

    /// A sound by its file name, in the container, else in the bundle.
    public func sound(_ name: String) -> SoundFile? {
        containerSounds[name] ?? sounds[name]
    }

    /// Finds an image by its name, with or without extension.
    /// - Returns: The file name.
    public func image(_ name: String) -> String? {
        if images.contains(name) { return name }
        return images.filter { file in
            file.hasPrefix(name + ".") && !file.dropFirst(name.count + 1).contains(".")
        }.min()
    }
}
