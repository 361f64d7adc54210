import HeraldMailbox
import HeraldModel
import HeraldTrust

/// The contents of a device token.
struct TokenReport: Hashable, Codable, Sendable {
    /// The first digits of the token; all of it would be a capability.
    let token: String
    /// Whether it opens under a key of this service.
    let opens: Bool
    /// The number of that key.
    var key: UInt32?
    var deviceNumber: UInt64?
    var appNumber: UInt32?
    /// The number of removals of the app from the device before the token was made.
    var generation: UInt32?
    /// The token's registration, if it is known.
    var registration: RegistrationState?

    /// The present state of a token's registration.
    struct RegistrationState: Hashable, Codable, Sendable {
        let device: String
        let topic: String
        let environment: PushEnvironment
        let generation: UInt32
        let isLive: Bool
        /// The time of its last end; nil if it never ended.
        let ended: String?
    }

    /// Asks the service for a registration, by its control socket.
    struct Query: Hashable, Codable, Sendable {
        let deviceNumber: UInt64
        let appNumber: UInt32
    }

    init(_ token: DeviceToken, ring: TokenKeyRing) {
        self.token = token.description
        let seal = TokenSeal(keys: ring, cacheCapacity: 0)
        guard let contents = seal.open(token) else {
            opens = false
            return
        }
        opens = true
        key = seal.keyNumber(of: token)
        deviceNumber = contents.slot.device.value
        appNumber = contents.slot.app.value
        generation = contents.generation
    }

    /// The answer that a provider gets for this token now, and why.
    var verdict: String {
        guard opens else { return "BadDeviceToken: no token key of this service opens it" }
        guard let registration else {
            return "BadDeviceToken: a token key opens it, but its device or app is unknown"
        }
        guard registration.isLive, registration.generation == generation else {
            return "Unregistered: the app was removed from the device"
                + (registration.ended.map { " at \($0)" } ?? "")
        }
        return "valid for \(registration.topic) in \(registration.environment.rawValue)"
    }
}

extension TokenReport.RegistrationState {
    init?(_ slot: Slot, in snapshot: RegistrySnapshot) {
        guard let device = snapshot.devices.first(where: { $0.1 == slot.device })?.0,
            let app = snapshot.apps.first(where: { $0.number == slot.app })?.app,
            let registration = snapshot.registrations.first(where: { $0.slot == slot })
        else { return nil }
        self.init(device: device, app: app, registration: registration)
    }

    init(device: DeviceID, app: App, registration: Registration) {
        self.device = device.name
        topic = app.topic.name
        environment = app.environment
        generation = registration.generation
        isLive = registration.isLive
        ended = registration.ended?.rfc3339
    }
}
