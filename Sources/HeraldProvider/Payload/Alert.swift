/// What a notification shows (`aps.alert`).
public struct Alert: Hashable, Sendable {
    /// One text of an alert: its words, or the key of words that the app has in the user's language.
    public enum Text: Hashable, Sendable, ExpressibleByStringLiteral {
        /// The words themselves.
        case literal(String)
        /// A key of the app's `Localizable.strings`, and what fills its `%@`.
        case localized(key: String, arguments: [String] = [])

        /// The words themselves.
        public init(stringLiteral value: String) {
            self = .literal(value)
        }
    }

    /// What it is about, in few words.
    public var title: Text?
    /// A second line of the title.
    public var subtitle: Text?
    /// The text.
    public var body: Text?
    /// The picture that is shown when the app is opened from it (`launch-image`).
    public var launchImage: String?
    /// The key of the text on the button that opens the app (`action-loc-key`).
    public var actionKey: String?

    /// Makes an alert.
    public init(title: Text? = nil, subtitle: Text? = nil, body: Text? = nil) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
    }

    /// Makes an alert of a text alone.
    public init(_ text: String) {
        body = .literal(text)
    }
}

/// What a notification sounds like (`aps.sound`).
public enum Sound: Hashable, Sendable {
    /// The system's.
    case `default`
    /// A file in the app's bundle, or in its container's `Library/Sounds`.
    case named(String)
    /// Past the mute switch, at a volume of 0 to 1; needs an entitlement.
    case critical(name: String = "default", volume: Double = 1)
}
