public import HeraldDevice
public import HeraldModel

/// A simulated device for tests of a backend or an app.
///
/// It needs no service. Its clock can be moved (``PhoneSwitches/clock``): local notifications that are due then are shown
/// before the action returns.
///
/// ```swift
/// try await withVirtualDevice { device in
///     let app = try await device.install(bundle: "Monopoly.app")
///     var switches = PhoneSwitches()
///     switches.languages = ["fr"]
///     try await device.agent.perform(.set(switches))
///     let record = try await device.receive(payload, for: app)
///     #expect(record?.body == "Jenna et Frank vous invitent à jouer")
/// }
/// ```
public struct VirtualDevice: Sendable {
    /// The device: its snapshots, actions and display records.
    public let agent: DeviceAgent

    /// Installs the bundle at a path, and allows everything that it requests by default.
    /// - Throws: ``DeviceError/Code/notPossible`` if it is not a bundle.
    @discardableResult
    public func install(
        bundle path: String,
        allow: Set<NotificationKind> = Set(NotificationKind.allCases)
    ) async throws -> Topic {
        try await agent.install(bundle: path, allow: allow)
    }

    /// Delivers a notification, as the service would; one with the `apns-id` of another is not shown again.
    /// - Returns: The display record; nil for an app that is not installed, and for a duplicate.
    /// - Throws: ``DeviceError/Code/badFolder``.
    public func receive(
        _ payload: [UInt8],
        for topic: Topic,
        pushType: PushType = .alert,
        collapseID: String? = nil,
        id: NotificationID = .random()
    ) async throws -> DisplayRecord? {
        let before = await agent.displayRecord(id.description)
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
        return await agent.displayRecord(of: id, within: await agent.isInServiceProgram(id) ? .seconds(60) : .zero)
    }
}

/// Runs `body` with a virtual device.
///
/// Without a folder it keeps nothing. Without a connection it only gets the notifications of
/// ``VirtualDevice/receive(_:for:pushType:collapseID:id:)``.
/// - Throws: ``DeviceError``, and the error of `body`.
public func withVirtualDevice<Result: Sendable>(
    folder: String? = nil,
    connection: (any ServiceConnection)? = nil,
    _ body: @Sendable (VirtualDevice) async throws -> Result
) async throws -> Result {
    let agent = try DeviceAgent(
        connection: connection ?? DetachedConnection(),
        device: "virtual",
        service: "none",
        folder: folder
    )
    return try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await agent.run() }
        return try await body(VirtualDevice(agent: agent))
    }
}

/// A connection to no service: it counts as connected, and nothing arrives.
struct DetachedConnection: ServiceConnection {
    func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        try await handle(.connected)
        while true { try await Task.sleep(for: .seconds(3600)) }
    }
    func install(_ app: DeviceApp) {}
    func present(_ token: DeviceToken, for topic: Topic) {}
    func remove(_ topic: Topic, in environment: PushEnvironment?) {}
    func subscribe(to channel: DeviceChannel) {}
    func unsubscribe(from channel: DeviceChannel) {}
    func setEnabled(_ enabled: Bool, for topic: Topic) {}
    func setSaving(_ saving: Bool) {}
    func setNetwork(_ isOn: Bool) {}
}
