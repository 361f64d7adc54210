import Foundation
public import HeraldJSON
public import HeraldModel

/// An app on this machine that gets its notifications from the agent, over the agent's local socket.
///
/// ```swift
/// try await LocalApp.run(topic, wants: [.alert], socket: "herald-device/run/agent.sock") { app in
///     for await event in app.events {
///         if case .token(let token, _) = event { try await provider.register(token) }
///     }
/// }
/// ```
public struct LocalApp: Sendable {
    /// The reason why an app gets a notification.
    public enum Cause: String, Hashable, Sendable {
        /// The app is in the foreground: nothing is shown.
        case foreground
        /// The user opened the app by the notification.
        case opened
        /// The user pressed a button of the notification's category.
        case action
        /// The app is woken. It must call ``LocalApp/done(_:_:)`` within thirty seconds.
        case background
        /// It is a broadcast of a channel to which the app is subscribed.
        case broadcast
    }

    /// A notification for an app.
    public struct Notification: Hashable, Sendable {
        /// The app, with the suffix of the push type if there is one.
        public var topic: Topic
        /// Its `apns-id`; of a broadcast, its `apns-unique-id`.
        public var id: NotificationID?
        /// The channel of a broadcast; nil for others.
        public var channel: String?
        /// The identifier of a local notification; nil for a remote one.
        public var local: String?
        /// The payload.
        public var payload: JSON
        /// The reason why the app gets it.
        public var cause: Cause
        /// The button that the user pressed.
        public var action: String?
        /// The text that the user entered.
        public var text: String?
        /// The state of the app when it gets it.
        public var state: AppState
    }

    /// An event from the device.
    public enum Event: Hashable, Sendable {
        /// The user's permission; an empty set refuses.
        case permission(Set<NotificationKind>)
        /// The user changed the permission.
        case settings(Set<NotificationKind>)
        /// The device token, for the app's provider.
        case token(DeviceToken, for: Topic)
        /// There is no device token, with the reason.
        case refused(String)
        /// A notification or a broadcast.
        case notification(Notification)
        /// The service has taken the subscription to a channel; or it refuses it, with the reason.
        case channel(String, refused: String?)
        /// The user changed the languages, which are in order of preference.
        case languages([String])
        /// Another connection has registered the app, and gets its events from now on.
        case replaced
        /// The device, after ``LocalDevice/watch()``.
        case device(PhoneSnapshot)
    }

    /// Events in the order in which the agent sent them; for one reader.
    public typealias Events = AsyncCompactMapSequence<AsyncStream<[UInt8]>, Event>

    /// The events, until the agent closes the connection, or 1,024 events are unread.
    public var events: Events { client.events.compactMap { Event($0) } }
    let topic: Topic
    let client: LocalClient

    /// The device on which the app runs.
    public var device: LocalDevice { LocalDevice(client: client) }

    /// Runs the app on the agent's socket, until `body` returns.
    ///
    /// An app that is not installed is installed, and requests the permission that it `wants`.
    /// - Throws: ``DeviceError/Code/unreachable``, ``DeviceError/Code/notPossible``, and the error of `body`.
    public static func run<Result: Sendable>(
        _ topic: Topic,
        wants: Set<NotificationKind> = Set(NotificationKind.allCases),
        socket: String,
        _ body: @Sendable (LocalApp) async throws -> Result
    ) async throws -> Result {
        try await LocalClient.with(socket: socket) { client in
            let kinds = NotificationKind.allCases.filter(wants.contains).map { JSON.string($0.rawValue) }
            try await client.ask([
                "do": .string("register"), "topic": .string(topic.name), "wants": .array(kinds),
            ])
            return try await body(LocalApp(topic: topic, client: client))
        }
    }

    /// Changes the app's state.
    ///
    /// In the foreground it gets its notifications itself, and nothing is shown.
    /// - Throws: ``DeviceError/Code/unreachable``, ``DeviceError/Code/notPossible``.
    public func move(to state: AppState) async throws {
        try await client.ask([
            "do": .string("state"), "topic": .string(topic.name), "state": .string(state.rawValue),
        ])
    }

    /// Sets the number on the app's icon, if the user permits badges; 0 removes it.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` for a number below 0 or above 999,999,999.
    public func setBadge(_ number: Int) async throws {
        try await device.perform(.badge(topic, number))
    }

    /// Subscribes to a broadcast channel; ``Event/channel(_:refused:)`` has the service's answer.
    ///
    /// The device stays subscribed, over restarts, until the app unsubscribes or is removed.
    /// - Parameter channel: The `apns-channel-id`.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if it is not base64 of 16 bytes, or the
    ///   device has 100 subscriptions.
    public func subscribe(to channel: String) async throws {
        try await device.perform(.subscribe(topic, channel: channel))
    }

    /// Ends the subscription to a broadcast channel.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if there is none.
    public func unsubscribe(from channel: String) async throws {
        try await device.perform(.unsubscribe(topic, channel: channel))
    }

    /// Ends the background run that a silent notification started.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if its time is up.
    public func done(_ id: NotificationID, _ result: DisplayRecord.BackgroundOutcome) async throws {
        try await client.ask([
            "do": .string("done"), "topic": .string(topic.name), "apns_id": .string(id.description),
            "result": .string(result.rawValue),
        ])
    }

    /// Registers the app's categories.
    ///
    /// They replace its earlier ones and those of its bundle, and stay until the app registers others or is removed.
    /// Notifications that are shown already keep their buttons. Of several with the same identifier, the last counts.
    /// - Throws: ``DeviceError/Code/unreachable``, ``DeviceError/Code/notPossible``.
    public func setCategories(_ categories: [NotificationCategory]) async throws {
        try await device.perform(.categories(topic, categories))
    }

    /// Schedules a local notification; replaces the pending one with its identifier.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if the payload shows nothing, the moment is
    ///   past, or 64 are pending.
    public func schedule(_ notification: LocalNotification) async throws {
        try await device.perform(.schedule(topic, notification))
    }

    /// The app's pending local notifications, the next one first.
    /// - Throws: ``DeviceError/Code/unreachable``.
    public func pending() async throws -> [PendingNotification] {
        try PendingNotification.list(in: await client.ask(["do": .string("pending"), "topic": .string(topic.name)]))
    }

    /// Cancels a pending local notification, or all of the app; those on the screen remain.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if none with this identifier is pending.
    public func cancel(_ id: String?) async throws {
        try await device.perform(.cancel(topic, id: id))
    }

    /// The user's languages in order of preference, for a provider that writes texts in them.
    /// - Throws: ``DeviceError/Code/unreachable``.
    public func languages() async throws -> [String] {
        try await client.ask(["do": .string("languages")])["languages"]?.elements?.compactMap(\.text) ?? []
    }
}

extension LocalApp.Event {
    init?(_ line: [UInt8]) {
        guard let members = JSON.Object(line, rules: .lenient) else { return nil }
        let topic = members["topic"]?.text.flatMap { Topic($0) }
        func kinds() -> Set<NotificationKind> {
            Set((members["granted"]?.elements ?? []).compactMap { $0.text.flatMap { NotificationKind(rawValue: $0) } })
        }
        switch members["event"]?.text {
        case "permission": self = .permission(kinds())
        case "settings": self = .settings(kinds())
        case "token":
            guard let topic, let token = members["token"]?.text.flatMap({ DeviceToken($0) }) else { return nil }
            self = .token(token, for: topic)
        case "refused": self = .refused(members["reason"]?.text ?? "")
        case "languages": self = .languages(members["languages"]?.elements?.compactMap(\.text) ?? [])
        case "replaced": self = .replaced
        case "channel":
            guard let channel = members["channel"]?.text else { return nil }
            self = .channel(channel, refused: members["refused"]?.text)
        case "device":
            guard let device = try? LocalDevice.decode(PhoneSnapshot.self, from: members["device"]) else { return nil }
            self = .device(device)
        case "notification":
            guard let topic, let cause = members["why"]?.text.flatMap({ LocalApp.Cause(rawValue: $0) }) else {
                return nil
            }
            self = .notification(
                LocalApp.Notification(
                    topic: topic,
                    id: members["apns_id"]?.text.flatMap { NotificationID($0) },
                    channel: members["channel"]?.text,
                    local: members["local"]?.text,
                    payload: members["payload"] ?? .null,
                    cause: cause,
                    action: members["action"]?.text,
                    text: members["text"]?.text,
                    state: members["state"]?.text.flatMap { AppState(rawValue: $0) } ?? .background
                )
            )
        default: return nil
        }
    }
}
