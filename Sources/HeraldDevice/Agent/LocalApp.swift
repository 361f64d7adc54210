import Foundation
public import HeraldModel

/// An app of this machine that gets its notifications from the agent, over the agent's local socket.
///
/// ```swift
/// try await LocalApp.run(topic, wants: [.alert], socket: "herald-device/run/agent.sock") { app in
///     for await event in app.events {
///         if case .token(let token, _) = event { try await provider.register(token) }
///     }
/// }
/// ```
public struct LocalApp: Sendable {
    /// Why an app gets a notification.
    public enum Cause: String, Hashable, Sendable {
        /// The app is in the foreground: nothing is shown.
        case foreground
        /// The user opened the app by it.
        case opened
        /// The user pressed a button of its category.
        case action
        /// The app is woken, and has thirty seconds to say ``LocalApp/done(_:_:)``.
        case background
    }

    /// A notification as an app gets it.
    public struct Notification: Hashable, Sendable {
        /// The app, with the suffix of the notification's kind where it has one.
        public var topic: Topic
        /// Its `apns-id`.
        public var id: NotificationID?
        /// The payload.
        public var payload: PayloadValue
        /// Why the app gets it.
        public var cause: Cause
        /// The button that the user pressed.
        public var action: String?
        /// What the user wrote.
        public var text: String?
    }

    /// What an app hears from the device.
    public enum Event: Hashable, Sendable {
        /// The user said what its notifications may do; nothing means that they refused.
        case permission(Set<NotificationKind>)
        /// The user changed their mind.
        case settings(Set<NotificationKind>)
        /// The device token, to be handed to the app's provider.
        case token(DeviceToken, for: Topic)
        /// There is no device token, and why.
        case refused(String)
        /// A notification.
        case notification(Notification)
        /// The user's languages have changed; the dearest first.
        case languages([String])
    }

    /// Events in the order in which the agent said them; for one reader.
    public struct Events: AsyncSequence, Sendable {
        let lines: AsyncStream<[UInt8]>

        /// Starts to read.
        public func makeAsyncIterator() -> Iterator {
            Iterator(lines: lines.makeAsyncIterator())
        }

        /// Reads.
        public struct Iterator: AsyncIteratorProtocol {
            var lines: AsyncStream<[UInt8]>.Iterator

            /// The next one; nil once there are no more.
            public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Event? {
                while let line = await lines.next(isolation: actor) {
                    if let event = Event(line) { return event }
                }
                return nil
            }
        }
    }

    /// What the app hears, until the agent is gone, or until the app has left 1,024 of them unread.
    public let events: Events
    private let topic: Topic
    private let client: LocalClient

    /// Is the app for as long as `body` runs; after that the device takes it for ended.
    /// - Parameters:
    ///   - topic: The app's bundle identifier; one that is not installed is installed.
    ///   - wants: What it asks the user for.
    ///   - socket: The path of the agent's socket.
    ///   - body: The app.
    /// - Returns: What `body` returns.
    /// - Throws: ``DeviceError/Code/unreachable``, ``DeviceError/Code/notPossible``, and what `body` throws.
    public static func run<Result: Sendable>(
        _ topic: Topic,
        wants: Set<NotificationKind> = Set(NotificationKind.allCases),
        socket: String,
        _ body: @Sendable (LocalApp) async throws -> Result
    ) async throws -> Result {
        try await LocalClient.with(socket: socket) { client in
            let kinds = NotificationKind.allCases.filter(wants.contains).map { PayloadValue.string($0.rawValue) }
            try await client.ask([
                "do": .string("register"), "topic": .string(topic.name), "wants": .array(kinds),
            ])
            return try await body(LocalApp(events: Events(lines: client.events), topic: topic, client: client))
        }
    }

    /// Says where the app is: in the foreground it gets its notifications itself, and nothing is shown.
    /// - Throws: ``DeviceError/Code/unreachable``, ``DeviceError/Code/notPossible``.
    public func move(to state: AppState) async throws {
        try await client.ask([
            "do": .string("state"), "topic": .string(topic.name), "state": .string(state.rawValue),
        ])
    }

    /// Says how the work ended that a silent notification woke the app for.
    /// - Throws: ``DeviceError/Code/unreachable``; ``DeviceError/Code/notPossible`` if its time was up.
    public func done(_ id: NotificationID, _ result: SawRecord.BackgroundOutcome) async throws {
        try await client.ask([
            "do": .string("done"), "topic": .string(topic.name), "apns_id": .string(id.description),
            "result": .string(result.rawValue),
        ])
    }

    /// The user's languages, the dearest first: to be passed to a provider that writes texts in them.
    /// - Throws: ``DeviceError/Code/unreachable``.
    public func languages() async throws -> [String] {
        try await client.ask(["do": .string("languages")])["languages"]?.elements?.compactMap(\.text) ?? []
    }
}

extension LocalApp.Event {
    init?(_ line: [UInt8]) {
        guard case .object(let members, _) = PayloadReader.read(line) else { return nil }
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
        case "notification":
            guard let topic, let cause = members["why"]?.text.flatMap({ LocalApp.Cause(rawValue: $0) }) else {
                return nil
            }
            self = .notification(
                LocalApp.Notification(
                    topic: topic,
                    id: members["apns_id"]?.text.flatMap { NotificationID($0) },
                    payload: members["payload"] ?? .null,
                    cause: cause,
                    action: members["action"]?.text,
                    text: members["text"]?.text
                )
            )
        default: return nil
        }
    }
}
