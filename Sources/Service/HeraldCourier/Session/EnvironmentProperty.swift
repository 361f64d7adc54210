import HeraldModel
import HeraldWire

/// The user property `environment`: the environment of the apps that a packet names.
///
/// `production`, `sandbox` or `development`; among them are the words of an app's `aps-environment`.
enum EnvironmentProperty: Hashable, Sendable {
    /// The environment is that of the connection.
    case absent
    case named(PushEnvironment)
    /// Another word, or two different ones.
    case unknown

    init(_ properties: MQTTProperties) {
        let values = Set(properties.userProperties(named: "environment"))
        switch (values.count, values.first) {
        case (0, _): self = .absent
        case (1, "production"): self = .named(.production)
        case (1, "sandbox"), (1, "development"): self = .named(.sandbox)
        default: self = .unknown
        }
    }

    /// The reason string for an unknown one.
    static let allowed = "the user property environment is production, sandbox or development"
}
