package import HeraldModel

/// Stores registrations and MQTT sessions.
///
/// Every change is durable when the call returns. All registrations are in memory too; sessions only while their device is
/// connected.
package protocol RegistryStore: FeedbackStore {
    /// The state that other nodes change too; nil for a store of one node.
    ///
    /// With one, all changes come through the sink of ``follow(_:)``, own ones too: in the order in which the store has them,
    /// and before the call that makes a change returns.
    var shared: (any SharedState)? { get }

    /// Loads all registrations.
    /// - Throws: If the store cannot be read.
    func loadRegistry() async throws -> RegistrySnapshot

    /// Reports to `sink` every change after ``loadRegistry()``; only a store with shared state does so.
    func follow(_ sink: any RegistrySink)

    /// The number of a device; a new one for a new device.
    func number(of device: DeviceID) async throws -> DeviceNumber

    /// The number of an app; a new one for a new app, which no app ever had.
    func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber

    /// The use of an app, or of all, by topic and environment.
    func appUsages(_ app: AppNumber?) async throws -> [AppUsage]

    /// Forgets an app that no device has registered and that has no channel: its ended registrations, what is stored for
    /// them, and its name. Its number is never used again.
    /// - Returns: The slots of the ended registrations.
    func forgetApp(_ app: AppNumber, at moment: WallTime) async throws -> [Slot]

    // MARK: - Registrations and sessions
    //
    // A connection names its fence. In a cluster, the records of a device have the fence of its newest connection that has
    // begun, or that has changed something since. What an older connection asks for is refused with ``NewerConnection``, however late
    // its write comes. An engine of one process does not look at fences: its courier knows which connection is the newest.

    /// Makes the registration live and takes it off the feedback list.
    ///
    /// It stays as it is if it was live. Otherwise it gets a generation that no token ever had, even if the
    /// registration had been forgotten.
    func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration

    /// Ends the registration, and removes the slot's notification with a line in the journal. Nothing happens if it was not
    /// live.
    func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws

    /// Forgets all but the latest `limit` ended registrations of a device, with their feedback records.
    /// - Returns: The slots of the forgotten registrations.
    func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot]

    /// Stores whether the user wants the app's notifications; if not, removes the slot's notification with a line in the
    /// journal.
    func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws

    func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws

    /// Reads the session of a device, and whether it saves power.
    ///
    /// Returns at once. `done` is called once, from any thread, and returns at once; with an error if the store cannot be
    /// read.
    func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    )

    /// Takes a device's session and registrations over for a connection that begins: stores its session in place of the record
    /// that it read.
    ///
    /// Returns at once. `done` is called once, from any thread, and returns at once: when the change is durable, with the
    /// present record if that is not `read` any more, or with an error if nothing was changed.
    func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    )

    /// Stores a session, or removes it with nil.
    ///
    /// Returns at once. `done` is called once, from any thread, and returns at once: when the change is durable, or with an
    /// error if nothing was changed.
    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
}

/// The result of taking a session over.
package enum SessionBeginning: Hashable, Sendable {
    case stored
    /// Another node changed the record since it was read; nothing was stored.
    case changed(DeviceRecord)
}

/// The error for a connection whose device has a newer one, at this node or another.
package struct NewerConnection: Error, Hashable, CustomStringConvertible {
    package init() {}

    package var description: String { "the device has a newer connection" }
}

extension RegistryStore {
    package var shared: (any SharedState)? { nil }

    package func follow(_ sink: any RegistrySink) {}

    /// In one process nobody else changes the record.
    package func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    ) {
        setSession(session, for: device, fence: fence) { done($0.map { .stored }) }
    }

    /// ``readDeviceRecord(_:fence:_:)`` as an async call, for no connection.
    /// - Throws: If the store cannot be read.
    package func deviceRecord(_ device: DeviceNumber) async throws -> DeviceRecord {
        try await withCheckedThrowingContinuation { continuation in
            readDeviceRecord(device, fence: .max) { continuation.resume(with: $0) }
        }
    }
}

/// All devices, apps and registrations.
package struct RegistrySnapshot: Sendable {
    package var devices: [(DeviceID, DeviceNumber)]
    package var apps: [AppRecord]
    package var registrations: [Registration]

    package init(
        devices: [(DeviceID, DeviceNumber)] = [],
        apps: [AppRecord] = [],
        registrations: [Registration] = []
    ) {
        self.devices = devices
        self.apps = apps
        self.registrations = registrations
    }
}

/// An app that has a number, and how it came by it.
package struct AppRecord: Hashable, Sendable {
    package let app: App
    package let number: AppNumber
    /// Nil for an app that a provider's certificate names.
    package let origin: AppOrigin?
    package let created: WallTime

    package init(app: App, number: AppNumber, origin: AppOrigin?, created: WallTime) {
        self.app = app
        self.number = number
        self.origin = origin
        self.created = created
    }
}

/// The registrations and channels of an app.
package struct AppUsage: Hashable, Sendable {
    package let record: AppRecord
    /// Devices on which it is registered.
    package let devices: Int
    package let channels: Int

    package init(record: AppRecord, devices: Int, channels: Int) {
        self.record = record
        self.devices = devices
        self.channels = channels
    }

    /// Whether it can be forgotten.
    package var isUnused: Bool { devices == 0 && channels == 0 }
}

/// The stored state of a device between its connections.
package struct DeviceRecord: Hashable, Sendable {
    package var isSavingPower: Bool
    package var session: SessionRecord?
    /// The place of the record in the cluster's log, which a connection that begins has to confirm by taking the session
    /// over; nil in one process, where the record that was read is the present one.
    package var sequence: UInt64?

    package init(isSavingPower: Bool = false, session: SessionRecord? = nil, sequence: UInt64? = nil) {
        self.isSavingPower = isSavingPower
        self.session = session
        self.sequence = sequence
    }
}

/// An MQTT session between connections: its subscriptions, and how long they outlive the connection.
package struct SessionRecord: Hashable, Sendable {
    /// Topic filter → granted QoS.
    package var subscriptions: [String: UInt8]
    /// Seconds that the session outlives its connection (MQTT 5 §3.1.2.11.2); `UInt32.max` for no end.
    package var expiryInterval: UInt32
    /// The environment of its apps; a connection in another environment does not share the session.
    package var environment: PushEnvironment
    /// The end of the last connection in milliseconds of wall time; nil while connected, or after a crash.
    package var disconnected: Int64?
    /// Topic filter → number of the newest broadcast that the session got; nil if none.
    package var broadcasts: [String: UInt64]?
    /// The key of the tokens that the device is known to have; nil if it is not known.
    package var tokenKey: UInt32?
    /// Topics of apps in another environment than the session's; nil if there are none.
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

    package func isExpired(at now: WallTime) -> Bool {
        guard let disconnected, expiryInterval != .max else { return false }
        return WallTime(milliseconds: disconnected) + .seconds(Int64(expiryInterval)) <= now
    }
}
