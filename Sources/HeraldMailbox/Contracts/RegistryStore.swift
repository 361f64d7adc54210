package import HeraldModel

/// Where registrations and MQTT sessions are kept.
///
/// Every change is durable when the call returns. The registry holds all registrations in memory (they decide about
/// each request) and sessions only while a device is connected.
package protocol RegistryStore: Sendable {
    /// All that is registered, for the start.
    /// - Throws: If the store cannot be read.
    func loadRegistry() async throws -> RegistrySnapshot

    /// The number of a device; makes one for a device never seen before.
    func number(of device: DeviceID) async throws -> DeviceNumber

    /// The number of an app; makes one for an app never seen before.
    func number(of app: App) async throws -> AppNumber

    /// Makes the registration live and takes it off the feedback list. The same generation stays if it was live; else it
    /// gets one that no token was ever minted for, also where the registration had been forgotten.
    func register(_ slot: Slot, at moment: WallTime) async throws -> Registration

    /// Ends the registration, puts its token on the feedback list, and forgets what waits in its slot, with a line in
    /// the journal. Nothing happens if it was not live.
    func unregister(_ slot: Slot, at moment: WallTime) async throws

    /// Forgets the device's ended registrations except for the latest `limit`, and what the feedback list says of them.
    /// - Returns: Those forgotten.
    func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot]

    /// Keeps whether the user wants the app's notifications; if not, forgets what waits in its slot, with a line in the
    /// journal.
    func setEnabled(_ enabled: Bool, for slot: Slot) async throws

    /// Keeps whether the device saves power.
    func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws

    /// Reads the session kept for a device, and whether it saves power.
    ///
    /// Returns at once. `done` is called once, from any thread, and returns at once as well; with an error if the store
    /// cannot be read.
    func readDeviceRecord(
        _ device: DeviceNumber,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    )

    /// Keeps a session, or drops it with nil.
    ///
    /// Returns at once. `done` is called once, from any thread, and returns at once as well: when the change is durable,
    /// or with an error if nothing was changed.
    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )

    /// Tokens that died and were not registered again, oldest first.
    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord]

    /// Forgets exactly these.
    func clearFeedback(_ records: [FeedbackRecord]) async throws
}

extension RegistryStore {
    /// ``readDeviceRecord(_:_:)`` for those who can wait.
    /// - Throws: If the store cannot be read.
    package func deviceRecord(_ device: DeviceNumber) async throws -> DeviceRecord {
        try await withCheckedThrowingContinuation { continuation in
            readDeviceRecord(device) { continuation.resume(with: $0) }
        }
    }
}

/// One app on one device, as the registry keeps it.
package struct Registration: Hashable, Sendable {
    package let slot: Slot
    /// Counts how often the app was removed from the device; a token holds the generation it was minted for.
    package var generation: UInt32
    package var isLive: Bool
    /// When it was last made or confirmed.
    package var registered: WallTime
    /// When it last ended; nil if it never did.
    package var ended: WallTime?
    /// Whether the user wants the app's notifications.
    package var isEnabled: Bool

    package init(
        slot: Slot,
        generation: UInt32,
        isLive: Bool,
        registered: WallTime,
        ended: WallTime? = nil,
        isEnabled: Bool = true
    ) {
        self.slot = slot
        self.generation = generation
        self.isLive = isLive
        self.registered = registered
        self.ended = ended
        self.isEnabled = isEnabled
    }
}

/// All that is registered.
package struct RegistrySnapshot: Sendable {
    package var devices: [(DeviceID, DeviceNumber)]
    package var apps: [(App, AppNumber)]
    package var registrations: [Registration]

    package init(
        devices: [(DeviceID, DeviceNumber)] = [],
        apps: [(App, AppNumber)] = [],
        registrations: [Registration] = []
    ) {
        self.devices = devices
        self.apps = apps
        self.registrations = registrations
    }
}

/// What is kept of a device between its connections.
package struct DeviceRecord: Hashable, Sendable {
    package var isSavingPower: Bool
    package var session: SessionRecord?

    package init(isSavingPower: Bool = false, session: SessionRecord? = nil) {
        self.isSavingPower = isSavingPower
        self.session = session
    }
}

/// An MQTT session between connections: its subscriptions, and how long they outlive the connection.
package struct SessionRecord: Hashable, Sendable, Codable {
    /// Topic filter → granted QoS.
    package var subscriptions: [String: UInt8]
    /// Seconds that the session outlives its connection (MQTT 5 §3.1.2.11.2); `UInt32.max` for ever.
    package var expiryInterval: UInt32
    /// The environment of the apps that it subscribed to; a connection by the name of another one has no part in it.
    package var environment: PushEnvironment
    /// Milliseconds of wall time at which the last connection ended; nil while one is there, or if the service died.
    package var disconnected: Int64?
    /// What the session has had of its channels: topic filter → number of the newest broadcast; nil if nothing.
    package var broadcasts: [String: UInt64]?
    /// The key under which the tokens are sealed that the device has surely been sent; nil if it is not known.
    package var tokenKey: UInt32?
    /// Topics whose apps are of another environment than the session's; nil if there are none.
    package var environments: [String: PushEnvironment]?

    package init(
        subscriptions: [String: UInt8] = [:],
        expiryInterval: UInt32,
        environment: PushEnvironment = .production,
        disconnected: WallTime? = nil,
        tokenKey: UInt32? = nil
    ) {
        self.subscriptions = subscriptions
        self.expiryInterval = expiryInterval
        self.environment = environment
        self.disconnected = disconnected?.milliseconds
        self.tokenKey = tokenKey
    }

    /// Whether the session is over at `now`.
    package func isExpired(at now: WallTime) -> Bool {
        guard let disconnected, expiryInterval != .max else { return false }
        return WallTime(milliseconds: disconnected) + .seconds(Int64(expiryInterval)) <= now
    }
}

/// A token that stopped working.
package struct FeedbackRecord: Hashable, Sendable {
    package let slot: Slot
    package let generation: UInt32
    package let time: WallTime

    package init(slot: Slot, generation: UInt32, time: WallTime) {
        self.slot = slot
        self.generation = generation
        self.time = time
    }
}
