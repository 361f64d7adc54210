/// Visible content of a notification (`aps.alert`).
public struct Alert: Hashable, Sendable {
    /// One text of an alert: literal, or a key that the app localizes.
    public enum Text: Hashable, Sendable, ExpressibleByStringLiteral {
        /// The text itself.
        case literal(String)
        /// A key of the app's `Localizable.strings`, with the arguments for its `%@` placeholders.
        case localized(key: String, arguments: [String] = [])

        /// Makes a literal text.
        public init(stringLiteral value: String) {
            self = .literal(value)
        }
    }

    /// Title: a few words.
    public var title: Text?
    /// Second line of the title.
    public var subtitle: Text?
    /// Body text.
    public var body: Text?
    /// Name of the image that the app shows while it opens (`launch-image`).
    public var launchImage: String?
    /// Key of the label of the button that opens the app (`action-loc-key`).
    public var actionKey: String?

    /// Makes an alert.
    public init(title: Text? = nil, subtitle: Text? = nil, body: Text? = nil) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
    }

    /// Makes an alert with only a body.
    public init(_ text: String) {
        body = .literal(text)
    }
}

/// Sound of a notification (`aps.sound`).
public enum Sound: Hashable, Sendable {
    /// The system's sound.
    case `default`
    /// A file in the app's bundle or in `Library/Sounds` of its container.
    case named(String)
    /// A critical alert: ignores the mute switch and plays at a volume of 0 to 1. The app needs an entitlement.
    case critical(name: String = "default", volume: Double = 1)
}

extension Alert {
    /// The body of an alert without other members, which is encoded as a string.
    var plainText: String? {
        guard title == nil, subtitle == nil, launchImage == nil, actionKey == nil, case .literal(let text) = body else {
            return nil
        }
        return text
    }

    func json(ofActivity isOfActivity: Bool, sound: [UInt8]?) -> [UInt8] {
        var alert = PayloadWriter()
        func write(_ text: Text?, _ name: String, _ prefix: String) {
            switch text {
            case .none: break
            case .literal(let words): alert.write(name, words)
            case .localized(let key, let arguments) where isOfActivity:
                var text = PayloadWriter()
                text.write("loc-key", key)
                text.write("loc-args", texts: arguments)
                alert.write(name, json: text.closed())
            case .localized(let key, let arguments):
                alert.write("\(prefix)loc-key", key)
                alert.write("\(prefix)loc-args", texts: arguments)
            }
        }
        write(title, "title", "title-")
        write(subtitle, "subtitle", "subtitle-")
        write(body, "body", "")
        alert.write("launch-image", launchImage)
        alert.write("action-loc-key", actionKey)
        alert.write("sound", json: sound)
        return alert.closed()
    }
}

extension Sound {
    func json() throws -> [UInt8] {
        switch self {
        case .default: PayloadWriter.text("default")
        case .named(let name): PayloadWriter.text(name)
        case .critical(let name, let volume):
            try {
                var sound = PayloadWriter()
                sound.write("critical", flag: true)
                sound.write("name", name)
                try sound.write("volume", fraction: volume)
                return sound.closed()
            }()
        }
    }
}
