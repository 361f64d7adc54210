import HeraldJSON

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

    func json(ofActivity isOfActivity: Bool, sound: JSON?) -> JSON {
        var alert = JSON.Object()
        func write(_ text: Text?, _ name: String, _ prefix: String) {
            switch text {
            case .none: break
            case .literal(let words): alert[name] = .string(words)
            case .localized(let key, let arguments) where isOfActivity:
                var text: JSON.Object = ["loc-key": .string(key)]
                text["loc-args"] = JSON(texts: arguments)
                alert[name] = .object(text)
            case .localized(let key, let arguments):
                alert["\(prefix)loc-key"] = .string(key)
                alert["\(prefix)loc-args"] = JSON(texts: arguments)
            }
        }
        write(title, "title", "title-")
        write(subtitle, "subtitle", "subtitle-")
        write(body, "body", "")
        alert["launch-image"] = launchImage.map { .string($0) }
        alert["action-loc-key"] = actionKey.map { .string($0) }
        alert["sound"] = sound
        return .object(alert)
    }
}

extension Sound {
    func json() throws -> JSON {
        switch self {
        case .default: .string("default")
        case .named(let name): .string(name)
        case .critical(let name, let volume):
            .object([
                "critical": .number(1), "name": .string(name), "volume": try JSON(fraction: volume, of: "volume"),
            ])
        }
    }
}

extension JSON {
    /// A list; nil if it is empty.
    init?(texts: [String]) {
        guard !texts.isEmpty else { return nil }
        self = .array(texts.map { .string($0) })
    }

    /// A number; throws if it is infinite or not a number.
    init(fraction number: Double, of name: String) throws {
        guard let number = JSON.Number(number) else { throw ProviderError(.badRequest, "\(name) is not a number") }
        self = .number(number)
    }
}

extension JSON.Object {
    /// Encodes a value of the app's, which must be an object.
    init(of value: some Encodable, _ what: String) throws {
        let json: JSON
        do {
            json = try JSON(encoding: value)
        } catch {
            throw ProviderError(.badRequest, "\(what) cannot be written as JSON")
        }
        guard let members = json.members else {
            throw ProviderError(.badRequest, "\(what) must be a JSON object: a struct, or a dictionary with text keys")
        }
        self = members
    }
}
