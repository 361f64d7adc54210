/// A text of a bundle in one language.
public struct LocalizedText: Hashable, Sendable {
    /// The text, with places for arguments.
    public var format: String
    /// Whether it is the most general of several forms for numbers.
    ///
    /// Arguments of notifications are texts, by which no form can be chosen.
    public var isPlural = false

    /// A text in one form.
    public init(format: String, isPlural: Bool = false) {
        self.format = format
        self.isPlural = isPlural
    }
}

/// What the system knows of an app when it presents a notification.
public struct AppBundle: Hashable, Sendable {
    /// The bundle identifier (`CFBundleIdentifier`).
    public var identifier: String?
    /// The name under the icon.
    public var name: String?
    /// The language that texts are written in first (`CFBundleDevelopmentRegion`).
    public var developmentLanguage = "en"
    /// Whether the app is woken for silent notifications (`remote-notification` in `UIBackgroundModes`).
    public var wakesInBackground = false
    /// The image that the app starts with (`UILaunchImageFile`).
    public var launchImageFile: String?
    /// The texts by language and key.
    public var texts: [String: [String: LocalizedText]] = [:]
    /// The keys that no language needs but the one they are written in: their text is the same everywhere, or unused.
    public var untranslatedKeys: Set<String> = []
    /// The sounds by file name.
    public var sounds: [String: SoundFile] = [:]
    /// The sounds of the container's `Library/Sounds`, which come before those of the bundle.
    public var containerSounds: [String: SoundFile] = [:]
    /// The file names of images and screens, and the names of images in catalogs.
    public var images: Set<String> = []
    /// The categories by identifier.
    public var categories: [String: NotificationCategory] = [:]

    /// A bundle with nothing in it.
    public init() {}

    /// The languages that it has texts in, sorted.
    public var languages: [String] { texts.keys.sorted() }

    /// The language for a user who prefers these.
    public func language(for preferences: [String]) -> String? {
        LanguageChoice.choose(from: languages, preferences: preferences, development: developmentLanguage)
    }

    /// The text of a key: in that language, else in the development language.
    public func text(_ key: String, in language: String?) -> LocalizedText? {
        language.flatMap { texts[$0]?[key] } ?? self.language(for: []).flatMap { texts[$0]?[key] }
    }

    /// A sound by its file name: the container's, then the bundle's.
    public func sound(_ name: String) -> SoundFile? {
        containerSounds[name] ?? sounds[name]
    }

    /// An image by its name, which may lack the extension.
    /// - Returns: The name of the file that is there.
    public func image(_ name: String) -> String? {
        if images.contains(name) { return name }
        return images.filter { file in
            file.hasPrefix(name + ".") && !file.dropFirst(name.count + 1).contains(".")
        }.min()
    }
}
