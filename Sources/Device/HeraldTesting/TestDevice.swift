public import HeraldModel
public import HeraldPhone

/// A virtual device that is connected to the service of a test.
public struct TestDevice: Sendable {
    /// How long to wait for something that is bound to come.
    public static let patience = Duration.seconds(30)

    /// The device: the user's actions, its screen and its display records.
    public let agent: DeviceAgent
    private let arrivals = DeviceArrivals()
    private let explain: @Sendable (String?) async -> String

    /// `explain` says why nothing came for a topic.
    init(_ agent: DeviceAgent, explain: @escaping @Sendable (String?) async -> String) {
        self.agent = agent
        self.explain = explain
    }

    /// Stays connected until the task is cancelled.
    ///
    /// A permanent refusal fails everything that waits.
    func run() async {
        do {
            try await agent.run { arrivals.take($0) }
        } catch {
            arrivals.fail("the device has stopped: \(error)")
        }
    }

    /// Installs an app like `com.example.chat` without a bundle, and waits for its device token.
    /// - Returns: The token, which the app would give to its provider.
    /// - Throws: ``HeraldTestError``.
    @discardableResult
    public func install(
        _ topic: String,
        allow: Set<NotificationKind> = Set(NotificationKind.allCases),
        within time: Duration = patience
    ) async throws -> DeviceToken {
        guard let app = Topic(topic) else {
            throw HeraldTestError("\(topic.debugDescription) is not the name of an app")
        }
        try await agent.install(topic: app, allow: allow)
        return try await arrivals.token(of: app, within: time)
    }

    /// Installs an app's bundle, with its texts, sounds and categories, and waits for its device token.
    /// - Returns: The token, which the app would give to its provider.
    /// - Throws: ``HeraldTestError``, `DeviceError` if it is not a bundle.
    @discardableResult
    public func install(
        bundle path: String,
        allow: Set<NotificationKind> = Set(NotificationKind.allCases),
        within time: Duration = patience
    ) async throws -> DeviceToken {
        try await arrivals.token(of: try await agent.install(bundle: path, allow: allow), within: time)
    }

    /// Waits for the next notification of an app, or of any app, that no call has returned yet.
    /// - Returns: What the user sees of it, and its payload.
    /// - Throws: ``HeraldTestError``; if none came, with the answers of the service to requests for this device.
    public func next(for topic: String? = nil, within time: Duration = patience) async throws -> DisplayRecord {
        do {
            return try await arrivals.next(for: topic, within: time)
        } catch let error as HeraldTestError where error.isTimeout {
            throw HeraldTestError(error.description + (await explain(topic)))
        }
    }

    /// All notifications that have arrived, the oldest first.
    public var notifications: [DisplayRecord] { arrivals.records }
}
