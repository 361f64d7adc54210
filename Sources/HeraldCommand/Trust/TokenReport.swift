import HeraldMailbox
import HeraldModel
import HeraldTrust

/// What a device token is, for people who ask.
struct TokenReport: Hashable, Codable, Sendable {
    /// The first digits of the token; all of it would be a capability.
    let token: String
    /// Whether it opens under a key of this service.
    let opens: Bool
    /// The number of that key.
    var key: UInt32?
    var deviceNumber: UInt64?
    var appNumber: UInt32?
    /// How often the app had been removed from the device when the token was minted.
    var generation: UInt32?
    /// What the numbers stand for, where a registration of theirs is known.
    var registration: Standing?

    /// The registration that a token was minted for, as it is now.
    struct Standing: Hashable, Codable, Sendable {
        let device: String
        let topic: String
        let environment: PushEnvironment
        let generation: UInt32
        let isLive: Bool
        /// When it last ended; nil if it never did.
        let ended: String?
    }

    /// Asks the service for a registration, by its control socket.
    struct Question: Hashable, Codable, Sendable {
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

    /// What a provider that sends to this token now is told, and why.
    var verdict: String {
        guard opens else { return "BadDeviceToken: it opens under no key of this service" }
        guard let registration else {
            return "BadDeviceToken: it opens, and nothing is known of what it was minted for"
        }
        guard registration.isLive, registration.generation == generation else {
            return "Unregistered: the app was removed from the device"
                + (registration.ended.map { " at \($0)" } ?? "")
        }
        return "good for \(registration.topic) in \(registration.environment.rawValue)"
    }
}

extension TokenReport.Standing {
    init?(_ slot: Slot, in snapshot: RegistrySnapshot) {
        guard let device = snapshot.devices.first(where: { $0.1 == slot.device })?.0,
            let app = snapshot.apps.first(where: { $0.1 == slot.app })?.0,
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
