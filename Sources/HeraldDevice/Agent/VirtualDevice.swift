public import HeraldModel
import Synchronization

/// A device for tests of what a backend or an app sends: what the user would see, as an assertion, without a service.
///
/// ```swift
/// try await withVirtualDevice { device in
///     let app = try await device.install(bundle: "Monopoly.app")
///     var switches = PhoneSwitches()
///     switches.languages = ["fr"]
///     try await device.agent.perform(.set(switches))
///     let seen = try await device.receive(payload, for: app)
///     #expect(seen?.body == "Jenna et Frank vous invitent à jouer")
/// }
/// ```
public struct VirtualDevice: Sendable {
    /// The device: its snapshot, its actions, and what was seen.
    public let agent: DeviceAgent

    /// Installs the bundle at a path, and allows it what it asks for, unless something else is said.
    /// - Throws: ``DeviceError/Code/notPossible`` if it is no bundle.
    @discardableResult
    public func install(
        bundle path: String,
        allow: Set<NotificationKind> = Set(NotificationKind.allCases)
    ) async throws -> Topic {
        try await agent.install(bundle: path, allow: allow)
    }

    /// Has a notification come, as from the service.
    /// - Parameters:
    ///   - payload: The payload's bytes.
    ///   - topic: The app.
    ///   - pushType: Its `apns-push-type`.
    ///   - collapseID: Its `apns-collapse-id`.
    ///   - id: Its `apns-id`; one that came before is not shown again.
    /// - Returns: What the user saw; nil for an app that is not installed, and for a notification that came before.
    /// - Throws: ``DeviceError/Code/badFolder``.
    public func receive(
        _ payload: [UInt8],
        for topic: Topic,
        pushType: PushType = .alert,
        collapseID: String? = nil,
        id: NotificationID = .random()
    ) async throws -> SawRecord? {
        let before = await agent.record(id.description)
        try await agent.receive(
            ReceivedNotification(
                topic: topic,
                payload: payload,
                id: id,
                pushType: pushType,
                priority: nil,
                collapseID: collapseID,
                expiresIn: nil,
                isRepeated: false
            )
        )
        guard before == nil else { return nil }
        return await agent.saw(id, within: await agent.isWaitedFor(id) ? .seconds(60) : .zero)
    }
}

/// Makes a device that keeps nothing, for as long as `body` runs.
/// - Parameters:
///   - folder: Where it keeps apps and state, if it shall keep them.
///   - line: Its connection to a service; nil for a device that gets what ``VirtualDevice/receive(_:for:pushType:collapseID:id:)``
///     gives it.
///   - body: What is tested.
/// - Returns: What `body` returns.
/// - Throws: ``DeviceError``, and what `body` throws.
public func withVirtualDevice<Result: Sendable>(
    folder: String? = nil,
    line: (any DeviceLine)? = nil,
    _ body: @Sendable (VirtualDevice) async throws -> Result
) async throws -> Result {
    let agent = try DeviceAgent(line: line ?? QuietLine(), device: "virtual", service: "none", folder: folder)
    return try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await agent.run() }
        return try await body(VirtualDevice(agent: agent))
    }
}

/// The line of a device without a service: nothing comes, for as long as it runs.
struct QuietLine: DeviceLine {
    func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        try await handle(.connected)
        while true { try await Task.sleep(for: .seconds(3600)) }
    }
    func install(_ app: DeviceApp) {}
    func present(_ token: DeviceToken, for topic: Topic) {}
    func remove(_ topic: Topic, in environment: PushEnvironment?) {}
    func setEnabled(_ enabled: Bool, for topic: Topic) {}
    func setSaving(_ saving: Bool) {}
    func setNetwork(_ isOn: Bool) {}
}
