import HeraldModel
import HeraldWire

/// What the user property `environment` says of the apps that a packet is about.
///
/// `production`, `sandbox` or `development`; the words that apps have for it in `aps-environment` among them.
enum NamedEnvironment: Hashable, Sendable {
    /// Nothing: that of the connection.
    case none
    case named(PushEnvironment)
    /// Something that is none, or two things.
    case unknown

    init(_ properties: MQTTProperties) {
        let values = Set(properties.userProperties(named: "environment"))
        switch (values.count, values.first) {
        case (0, _): self = .none
        case (1, "production"): self = .named(.production)
        case (1, "sandbox"), (1, "development"): self = .named(.sandbox)
        default: self = .unknown
        }
    }

    /// What a device that names an unknown one is told.
    static let words = "the user property environment is production, sandbox or development"
}

extension OpenSession {
    /// The app that a packet is about: the one that the topic is subscribed as, else the one in the environment that the
    /// packet names, else in the connection's; nil if it names an unknown one.
    func app(_ topic: Topic, _ properties: MQTTProperties) -> App? {
        if let entry = subscriptions.entry(topic) {
            return App(topic: topic, environment: entry.environment ?? environment)
        }
        return switch NamedEnvironment(properties) {
        case .none: App(topic: topic, environment: environment)
        case .named(let environment): App(topic: topic, environment: environment)
        case .unknown: nil
        }
    }
}
