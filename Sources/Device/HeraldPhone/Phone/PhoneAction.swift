public import HeraldJSON
public import HeraldModel

/// A part of the user's permission for an app's notifications.
public enum NotificationKind: String, Codable, Hashable, Sendable, CaseIterable {
    /// Show a text.
    case alert
    /// Show a number on the icon.
    case badge
    /// Play a sound.
    case sound
}

/// An action of the user of a simulated device.
///
/// Its JSON, `{"do":"tap","id":"n1"}`, is the same in the screen's API and on the local socket. On the socket, where `id` is
/// the number of the request, `notification` names the notification. A local notification that is scheduled or cancelled is
/// always named by `notification`.
public enum PhoneAction: Hashable, Sendable {
    /// Locks the screen.
    case lock
    /// Unlocks it.
    case unlock
    /// Leaves the open app.
    case home
    /// Opens an app by its icon.
    case open(Topic)
    /// Ends an app. No silent notification wakes it until it is opened again.
    case end(Topic)
    /// Opens the app by a notification: with the View button, the slider, or a tap.
    case tap(id: String)
    /// Closes a notification. Its app is not told.
    case close(id: String)
    /// Closes all notifications.
    case clear
    /// Presses a button of a notification's category.
    case act(id: String, action: String, text: String?)
    /// Sets the permission for an app's notifications; an empty set refuses them. Sets the style of its alerts, too, unless
    /// that is nil.
    case permit(Topic, Set<NotificationKind>, style: AlertStyle? = nil)
    /// Schedules a local notification of an app, as the app itself does; replaces the pending one with its identifier.
    case schedule(Topic, LocalNotification)
    /// Cancels a pending local notification of an app, or all of them without an identifier.
    case cancel(Topic, id: String?)
    /// Changes switches of the device.
    case set(PhoneSwitches)
    /// Sets the badge, as the app itself does; 0 removes it.
    case badge(Topic, Int)
    /// Registers the app's categories, as the app itself does. They replace its earlier ones and those of its bundle.
    case categories(Topic, [NotificationCategory])
    /// Subscribes an app to a channel (`apns-channel-id`), as the app itself does. It stays subscribed over restarts.
    case subscribe(Topic, channel: String)
    /// Ends an app's subscription to a channel.
    case unsubscribe(Topic, channel: String)
    /// Installs the bundle at a path.
    case install(path: String)
    /// Removes an app and its data. Its device token never works again.
    case remove(Topic)

    static let highestBadge = 999_999_999
}

/// Changes of a device's switches; nil leaves a switch unchanged.
public struct PhoneSwitches: Codable, SnakeCased, Hashable, Sendable {
    /// Whether the screen is locked.
    public var locked: Bool?
    /// The user's languages in order of preference; at least one.
    public var languages: [String]?
    /// Whether it has a network.
    public var network: Bool?
    /// Whether it saves power.
    public var saving: Bool?
    /// Whether the mute switch is on.
    public var muted: Bool?
    /// Whether a Focus is on.
    public var focus: Bool?
    /// The seconds by which the device's clock is ahead of the machine's; 0 to follow it.
    public var clock: Double?
    /// The device's time zone, like `Europe/Berlin`; ``machineZone`` to follow the machine's.
    public var timeZone: String?

    /// The value of ``timeZone`` for the machine's own.
    public static let machineZone = "machine"

    /// Changes nothing.
    public init() {}
}

extension PhoneAction: Codable, SnakeCased {
    private enum CodingKeys: String, CodingKey {
        case verb = "do"
        case topic, id, notification, action, text, allow, style, path, badge, categories, payload, channel
    }

    private enum Verb: String, Codable, CaseIterable {
        case lock, unlock, home, open, end, tap, close, clear, act, permit, set, badge, categories, schedule, cancel,
            subscribe, unsubscribe, install, remove
    }

    /// The values of `do`.
    static var verbs: [String] { Verb.allCases.map(\.rawValue) }

    /// Reads an action.
    /// - Throws: `DecodingError` with an explanation for the sender.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let verb = (try? container.decode(String.self, forKey: .verb)).flatMap({ Verb(rawValue: $0) }) else {
            throw Self.wrong(
                "\"do\" must be one of \(Self.verbs.map { "\"\($0)\"" }.joined(separator: ", "))",
                container
            )
        }
        func text(_ key: CodingKeys) throws -> String {
            guard let text = try? container.decode(String.self, forKey: key) else {
                throw Self.wrong("\"\(verb.rawValue)\" needs the text \"\(key.rawValue)\"", container)
            }
            return text
        }
        func topic() throws -> Topic {
            guard let topic = Topic(try text(.topic)) else {
                throw Self.wrong("\"topic\" must be an app, like com.example.app", container)
            }
            return topic
        }
        func notification() throws -> String {
            try container.contains(.notification) ? text(.notification) : text(.id)
        }
        switch verb {
        case .lock: self = .lock
        case .unlock: self = .unlock
        case .home: self = .home
        case .clear: self = .clear
        case .open: self = .open(try topic())
        case .end: self = .end(try topic())
        case .remove: self = .remove(try topic())
        case .tap: self = .tap(id: try notification())
        case .close: self = .close(id: try notification())
        case .act:
            let answer = container.contains(.text) ? try? container.decodeIfPresent(String.self, forKey: .text) : nil
            self = .act(id: try notification(), action: try text(.action), text: answer)
        case .permit:
            let (kinds, style) = try Self.permission(container)
            self = .permit(try topic(), kinds, style: style)
        case .set: self = .set(try Self.switches(decoder, container))
        case .badge:
            guard let number = try? container.decode(Int.self, forKey: .badge) else {
                throw Self.wrong("\"badge\" must be a number; 0 removes it", container)
            }
            self = .badge(try topic(), number)
        case .categories:
            let categories = try Self.categories(container)
            self = .categories(try topic(), categories)
        case .schedule:
            guard let payload = try? container.decode(JSON.self, forKey: .payload), payload.members != nil
            else {
                throw Self.wrong("\"schedule\" needs the object \"payload\", like {\"aps\":{…}}", container)
            }
            let trigger = try LocalNotification.Trigger(from: decoder)
            let id = try text(.notification)
            self = .schedule(try topic(), LocalNotification(id: id, payload: payload, trigger: trigger))
        case .cancel:
            self = .cancel(try topic(), id: container.contains(.notification) ? try text(.notification) : nil)
        case .subscribe: self = .subscribe(try topic(), channel: try text(.channel))
        case .unsubscribe: self = .unsubscribe(try topic(), channel: try text(.channel))
        case .install: self = .install(path: try text(.path))
        }
    }

    private static func permission(
        _ container: KeyedDecodingContainer<CodingKeys>
    ) throws -> (Set<NotificationKind>, AlertStyle?) {
        guard let kinds = try? container.decode([NotificationKind].self, forKey: .allow) else {
            throw wrong(
                "\"allow\" must be a list of \"alert\", \"badge\" and \"sound\"; an empty one refuses",
                container
            )
        }
        guard container.contains(.style) else { return (Set(kinds), nil) }
        guard let style = try? container.decode(AlertStyle.self, forKey: .style) else {
            throw wrong("\"style\" must be \"none\", \"banner\" or \"alert\"", container)
        }
        return (Set(kinds), style)
    }

    private static func switches(
        _ decoder: any Decoder,
        _ container: KeyedDecodingContainer<CodingKeys>
    ) throws -> PhoneSwitches {
        guard let switches = try? PhoneSwitches(from: decoder) else {
            throw wrong(
                "\"locked\", \"network\", \"saving\", \"muted\" and \"focus\" must be true or false, \"languages\" a"
                    + " list like [\"de\",\"en\"], \"clock\" a number of seconds, \"time_zone\" a text like Europe/Berlin",
                container
            )
        }
        guard switches != PhoneSwitches() else {
            throw wrong(
                "\"set\" needs one of \"locked\", \"network\", \"saving\", \"muted\", \"focus\", \"languages\","
                    + " \"clock\" and \"time_zone\"",
                container
            )
        }
        return switches
    }

    private static func categories(
        _ container: KeyedDecodingContainer<CodingKeys>
    ) throws -> [NotificationCategory] {
        guard let members = try? container.decode(JSON.Object.self, forKey: .categories) else {
            throw wrong(
                "\"categories\" must be an object, like {\"INVITATION\":{\"actions\":[{\"identifier\":\"accept\","
                    + "\"title\":\"Accept\"}]}}",
                container
            )
        }
        do {
            let categories = try NotificationCategory.read(members, file: "categories", limits: BundleLimits()).values
            return categories.sorted { $0.identifier < $1.identifier }
        } catch let error as BundleError {
            throw wrong(error.description, container)
        }
    }

    /// Writes an action.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        func write(_ verb: Verb, _ topic: Topic? = nil, id: String? = nil) throws {
            try container.encode(verb, forKey: .verb)
            try container.encodeIfPresent(topic, forKey: .topic)
            try container.encodeIfPresent(id, forKey: .id)
        }
        switch self {
        case .lock: try write(.lock)
        case .unlock: try write(.unlock)
        case .home: try write(.home)
        case .clear: try write(.clear)
        case .open(let topic): try write(.open, topic)
        case .end(let topic): try write(.end, topic)
        case .remove(let topic): try write(.remove, topic)
        case .tap(let id): try write(.tap, id: id)
        case .close(let id): try write(.close, id: id)
        case .act(let id, let action, let text):
            try write(.act, id: id)
            try container.encode(action, forKey: .action)
            try container.encodeIfPresent(text, forKey: .text)
        case .permit(let topic, let kinds, let style):
            try write(.permit, topic)
            try container.encode(NotificationKind.allCases.filter(kinds.contains), forKey: .allow)
            try container.encodeIfPresent(style, forKey: .style)
        case .set(let switches):
            try write(.set)
            try switches.encode(to: encoder)
        case .badge(let topic, let number):
            try write(.badge, topic)
            try container.encode(number, forKey: .badge)
        case .categories(let topic, let categories):
            try write(.categories, topic)
            try container.encode(try NotificationCategory.members(categories), forKey: .categories)
        case .schedule(let topic, let notification):
            try write(.schedule, topic)
            try container.encode(notification.id, forKey: .notification)
            try container.encode(notification.payload, forKey: .payload)
            try notification.trigger.encode(to: encoder)
        case .cancel(let topic, let id):
            try write(.cancel, topic)
            try container.encodeIfPresent(id, forKey: .notification)
        case .subscribe(let topic, let channel):
            try write(.subscribe, topic)
            try container.encode(channel, forKey: .channel)
        case .unsubscribe(let topic, let channel):
            try write(.unsubscribe, topic)
            try container.encode(channel, forKey: .channel)
        case .install(let path):
            try write(.install)
            try container.encode(path, forKey: .path)
        }
    }

    /// The request on the local socket, without its number, which is the `id` there.
    /// - Throws: `EncodingError`.
    package func request() throws -> JSON.Object {
        var members = try JSON(encoding: self).members ?? [:]
        if let notification = members["id"] {
            members["notification"] = notification
            members["id"] = nil
        }
        return members
    }

    private static func wrong(_ words: String, _ container: KeyedDecodingContainer<CodingKeys>) -> DecodingError {
        .dataCorruptedError(forKey: .verb, in: container, debugDescription: words)
    }
}
