package import HeraldMailbox
package import HeraldModel
package import HeraldTrust

/// The contents of a device token.
package struct TokenReport: Hashable, Codable, Sendable {
    /// The first digits of the token; all of it would be a capability.
    package let token: String
    /// Whether it opens under a key of this service.
    package let opens: Bool
    /// The number of that key.
    package var key: UInt32?
    package var deviceNumber: UInt64?
    package var appNumber: UInt32?
    /// The number of removals of the app from the device before the token was made.
    package var generation: UInt32?
    /// The token's registration, if it is known.
    package var registration: RegistrationState?

    /// The present state of a token's registration.
    package struct RegistrationState: Hashable, Codable, Sendable {
        package let device: String
        package let topic: String
        package let environment: PushEnvironment
        package let generation: UInt32
        let isLive: Bool
        /// The time of its last end; nil if it never ended.
        package let ended: String?
    }

    /// Asks the service for a registration, by its control socket.
    package struct Query: Hashable, Codable, Sendable {
        package let deviceNumber: UInt64
        package let appNumber: UInt32

        package init(deviceNumber: UInt64, appNumber: UInt32) {
            self.deviceNumber = deviceNumber
            self.appNumber = appNumber
        }
    }

    package init(_ token: DeviceToken, ring: TokenKeyRing) {
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
    package var verdict: String {
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
    package init?(_ slot: Slot, in snapshot: RegistrySnapshot) {
        guard let device = snapshot.devices.first(where: { $0.1 == slot.device })?.0,
            let app = snapshot.apps.first(where: { $0.number == slot.app })?.app,
            let registration = snapshot.registrations.first(where: { $0.slot == slot })
        else { return nil }
        self.init(device: device, app: app, registration: registration)
    }

    package init(device: DeviceID, app: App, registration: Registration) {
        self.device = device.name
        topic = app.topic.name
        environment = app.environment
        generation = registration.generation
        isLive = registration.isLive
        ended = registration.ended?.rfc3339
    }
}
