import Foundation

/// A key of the configuration file.
///
/// The same word names an option and an environment variable: `api-port`, `--api-port`, `HERALD_API_PORT`.
package struct SettingKey: Hashable, Sendable {
    /// The type of a key's value.
    package enum Shape: Sendable {
        case text
        case texts
        case number
        case flag
        /// A list of mappings. Only the file can hold one.
        case blocks
    }

    package let name: String
    package let shape: Shape
    /// A valid value, for error messages.
    package let example: String

    package init(_ name: String, _ shape: Shape = .text, example: String) {
        self.name = name
        self.shape = shape
        self.example = example
    }

    package static func == (left: SettingKey, right: SettingKey) -> Bool {
        left.name == right.name
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
    }

    /// The key as an environment variable.
    package var variable: String {
        "HERALD_" + name.uppercased().replacing("-", with: "_")
    }

    /// The error for a value of the wrong type, at a file and line; nil for the environment variable.
    func typeError(at place: String?) -> CommandError {
        let wanted =
            switch shape {
            case .text: "a text"
            case .texts: "a list of texts"
            case .number: "a whole number, without a unit"
            case .flag: "true or false"
            case .blocks: "a list of mappings"
            }
        guard let place else {
            let example = example.trimmingCharacters(in: ["[", "]"])
            return CommandError(
                .configuration,
                "the environment variable \(variable) must be \(wanted): write for example \(variable)=\(example)"
            )
        }
        return CommandError(
            .configuration,
            "\(place): `\(name)` must be \(wanted): write for example `\(name): \(example)`"
        )
    }

    /// The error for a value of the right type that is not allowed.
    package func refusal(_ value: String, _ wanted: String) -> CommandError {
        CommandError(.configuration, "\(name) cannot be \"\(LogText.shown(value))\": write \(wanted)")
    }
}

// MARK: - Keys that several commands read

extension SettingKey {
    package static let data = SettingKey("data", example: "/var/lib/herald")
    package static let environment = SettingKey("environment", example: "production")
    package static let host = SettingKey("host", example: "127.0.0.1")

    package static let alert = SettingKey("alert", example: "Hello")
    package static let allow = SettingKey("allow", example: "alert,badge,sound")
    package static let app = SettingKey("app", .texts, example: "[com.example.app]")
    package static let badge = SettingKey("badge", .number, example: "1")
    package static let ca = SettingKey("ca", example: "ca.pem")
    package static let certificate = SettingKey("certificate", example: "provider.pem")
    package static let code = SettingKey("code", example: "QE370-66QYX-63696-B4MHP-SADJC-4R4MC-5BDH6-DN6NJ-2KPYP")
    package static let collapseID = SettingKey("collapse-id", example: "match-7")
    package static let connectionsPerHour = SettingKey("connections-per-hour", .number, example: "120")
    package static let devicePort = SettingKey("device-port", .number, example: "5223")
    package static let desktop = SettingKey("desktop", .flag, example: "true")
    package static let expiration = SettingKey("expiration", example: "1h")
    package static let folder = SettingKey("folder", example: "herald-device")
    package static let identity = SettingKey("identity", example: "device.pem")
    package static let key = SettingKey("key", example: "AuthKey_ABCDE12345.p8")
    package static let keyID = SettingKey("key-id", example: "ABCDE12345")
    package static let language = SettingKey("language", .texts, example: "[de, en]")
    package static let longestPause = SettingKey("longest-pause", example: "2m")
    package static let payload = SettingKey("payload", example: "payload.json")
    package static let priority = SettingKey("priority", .number, example: "10")
    package static let proxy = SettingKey("proxy", example: "http://proxy.example.com:3128")
    package static let pushType = SettingKey("push-type", example: "alert")
    package static let screen = SettingKey("screen", .number, example: "8080")
    package static let screenHost = SettingKey("screen-host", example: "127.0.0.1")
    package static let service = SettingKey("service", example: "push.example.com:2197")
    package static let sound = SettingKey("sound", example: "default")
    package static let team = SettingKey("team", example: "TEAM123456")
    package static let title = SettingKey("title", example: "Hello")
    package static let topic = SettingKey("topic", example: "com.example.app")

    /// The keys of the client commands: `send`, `feedback` and `agent`.
    static let ofClients = [
        alert, allow, app, badge, ca, certificate, code, collapseID, connectionsPerHour, desktop, expiration, folder,
        identity, key, keyID, language, longestPause, payload, priority, proxy, pushType, screen, screenHost, service,
        sound,
        team, title, topic,
    ]

    package static let proxyHelp =
        "An HTTP proxy to go through, http://[user:password@]host:port, or none. (default: https_proxy, but for no_proxy)"

    package static let apps = SettingKey(
        "apps",
        .blocks,
        example: "[{topic: com.example.app, certificate: provider.pem}]"
    )
    package static let console = SettingKey("console", example: "http://127.0.0.1:2190")
    package static let consoleToken = SettingKey("console-token", example: "herald-data/run/admin.token")
    package static let database = SettingKey("database", example: "sqlite:///var/lib/herald/queue.db")
    package static let feedback = SettingKey("feedback", example: "push.example.com:2196")
    package static let interface = SettingKey("interface", example: "binary")

    /// The keys of `herald relay` that name its queue and its apps.
    package static let tablePrefix = SettingKey("table-prefix", example: "herald_")
    package static let ofRelay = [apps, console, consoleToken, database, feedback, interface, tablePrefix]
}
