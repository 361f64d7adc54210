import Foundation

/// A key of the configuration file.
///
/// The same word names an option and an environment variable: `api-port`, `--api-port`, `HERALD_API_PORT`.
struct SettingKey: Hashable, Sendable {
    /// The type of a key's value.
    enum Shape: Sendable {
        case text
        case texts
        case number
        case flag
        /// A list of mappings. Only the file can hold one.
        case blocks
    }

    let name: String
    let shape: Shape
    /// A valid value, for error messages.
    let example: String

    init(_ name: String, _ shape: Shape = .text, example: String) {
        self.name = name
        self.shape = shape
        self.example = example
    }

    static func == (left: SettingKey, right: SettingKey) -> Bool {
        left.name == right.name
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
    }

    /// The key as an environment variable.
    var variable: String {
        "HERALD_" + name.uppercased().replacing("-", with: "_")
    }

    /// Every key of every command.
    static let all: [SettingKey] = {
        var known: Set<SettingKey> = []
        return SettingsFile.Kind.allCases.flatMap(\.keys).filter { known.insert($0).inserted }
    }()

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
    func refusal(_ value: String, _ wanted: String) -> CommandError {
        CommandError(.configuration, "\(name) cannot be \"\(LogText.shown(value))\": write \(wanted)")
    }
}

// MARK: - Keys that several commands read

extension SettingKey {
    static let data = SettingKey("data", example: "/var/lib/herald")
    static let environment = SettingKey("environment", example: "production")
    static let host = SettingKey("host", example: "127.0.0.1")

    static let alert = SettingKey("alert", example: "Hello")
    static let allow = SettingKey("allow", example: "alert,badge,sound")
    static let app = SettingKey("app", .texts, example: "[com.example.app]")
    static let badge = SettingKey("badge", .number, example: "1")
    static let ca = SettingKey("ca", example: "ca.pem")
    static let certificate = SettingKey("certificate", example: "provider.pem")
    static let code = SettingKey("code", example: "QE370-66QYX-63696-B4MHP-SADJC-4R4MC-5BDH6-DN6NJ-2KPYP")
    static let collapseID = SettingKey("collapse-id", example: "match-7")
    static let connectionsPerHour = SettingKey("connections-per-hour", .number, example: "120")
    static let desktop = SettingKey("desktop", .flag, example: "true")
    static let expiration = SettingKey("expiration", example: "1h")
    static let folder = SettingKey("folder", example: "herald-device")
    static let identity = SettingKey("identity", example: "device.pem")
    static let key = SettingKey("key", example: "AuthKey_ABCDE12345.p8")
    static let keyID = SettingKey("key-id", example: "ABCDE12345")
    static let language = SettingKey("language", .texts, example: "[de, en]")
    static let longestPause = SettingKey("longest-pause", example: "2m")
    static let payload = SettingKey("payload", example: "payload.json")
    static let priority = SettingKey("priority", .number, example: "10")
    static let proxy = SettingKey("proxy", example: "http://proxy.example.com:3128")
    static let pushType = SettingKey("push-type", example: "alert")
    static let screen = SettingKey("screen", .number, example: "8080")
    static let screenHost = SettingKey("screen-host", example: "127.0.0.1")
    static let service = SettingKey("service", example: "push.example.com:2197")
    static let sound = SettingKey("sound", example: "default")
    static let team = SettingKey("team", example: "TEAM123456")
    static let title = SettingKey("title", example: "Hello")
    static let topic = SettingKey("topic", example: "com.example.app")

    /// The keys of the client commands: `send`, `feedback` and `agent`.
    static let ofClients = [
        alert, allow, app, badge, ca, certificate, code, collapseID, connectionsPerHour, desktop, expiration, folder,
        identity, key, keyID, language, longestPause, payload, priority, proxy, pushType, screen, screenHost, service,
        sound,
        team, title, topic,
    ]

    static let proxyHelp =
        "An HTTP proxy to go through, http://[user:password@]host:port, or none. (default: https_proxy, but for no_proxy)"

    static let apps = SettingKey(
        "apps",
        .blocks,
        example: "[{topic: com.example.app, certificate: provider.pem}]"
    )
    static let console = SettingKey("console", example: "http://127.0.0.1:2190")
    static let consoleToken = SettingKey("console-token", example: "herald-data/run/admin.token")
    static let database = SettingKey("database", example: "sqlite:///var/lib/herald/queue.db")
    static let feedback = SettingKey("feedback", example: "push.example.com:2196")
    static let interface = SettingKey("interface", example: "binary")

    /// The keys of `herald relay` that name its queue and its apps.
    static let tablePrefix = SettingKey("table-prefix", example: "herald_")
    static let ofRelay = [apps, console, consoleToken, database, feedback, interface, tablePrefix]
}
