import Foundation

/// What a device publishes to `apps/<topic>/settings`: `{"enabled":false}` when its user switched notifications off.
struct SettingsMessage: Hashable, Sendable, Decodable {
    let enabled: Bool

    /// Reads the JSON; members that nobody knows are ignored.
    init?(json: [UInt8]) {
        guard let message = try? JSONDecoder().decode(SettingsMessage.self, from: Data(json)) else { return nil }
        self = message
    }
}

/// What a device publishes to `device/power`: `{"saving":true}` while it saves power.
struct PowerMessage: Hashable, Sendable, Decodable {
    let saving: Bool

    /// Reads the JSON; members that nobody knows are ignored.
    init?(json: [UInt8]) {
        guard let message = try? JSONDecoder().decode(PowerMessage.self, from: Data(json)) else { return nil }
        self = message
    }
}
