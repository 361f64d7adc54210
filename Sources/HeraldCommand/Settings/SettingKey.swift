/// The options that may also stand in the configuration file and in the environment, each under one name.
///
/// The option `--api-port` is the key `api-port` of the file and the variable `HERALD_API_PORT`.
enum SettingKey: String, CaseIterable, Sendable {
    case acceptNonJSON = "accept-non-json"
    case activationPort = "activation-port"
    case alert
    case allow
    case apiToken = "api-token"
    case app
    case apps
    case apiPort = "api-port"
    case appsPerDevice = "apps-per-device"
    case badge
    case backgroundBurst = "background-burst"
    case backgroundPerHour = "background-per-hour"
    case binaryInHand = "binary-in-hand"
    case binaryPayloadSize = "binary-payload-size"
    case binaryPort = "binary-port"
    case ca
    case certificate
    case broadcastApps = "broadcast-apps"
    case channelLimit = "channel-limit"
    case clock
    case code
    case collapseID = "collapse-id"
    case connectionsPerHour = "connections-per-hour"
    case console
    case consoleHost = "console-host"
    case consolePort = "console-port"
    case consoleToken = "console-token"
    case data
    case database
    case demo
    case desktop
    case deviceCertificateDays = "device-certificate-days"
    case devicePort = "device-port"
    case drill
    case environment
    case expiration
    case feedback
    case feedbackEvery = "feedback-every"
    case feedbackPort = "feedback-port"
    case feedbackSize = "feedback-size"
    case folder
    case gracePeriod = "grace-period"
    case host
    case hostname
    case identity
    case interface
    case journalDays = "journal-days"
    case journalSize = "journal-size"
    case keepAlive = "keep-alive"
    case key
    case keyID = "key-id"
    case language
    case lease
    case logFormat = "log-format"
    case logLevel = "log-level"
    case longestPause = "longest-pause"
    case payload
    case payloadDrills = "payload-drills"
    case payloadDrillsInPublic = "payload-drills-in-public"
    case priority
    case providerIdle = "provider-idle"
    case pushType = "push-type"
    case newsstandTopic = "newsstand-topic"
    case notificationMemory = "notification-memory"
    case relayHost = "relay-host"
    case relayPort = "relay-port"
    case relayWindow = "relay-window"
    case retryFor = "retry-for"
    case revocationGrace = "revocation-grace"
    case revocationLists = "revocation-lists"
    case screen
    case screenHost = "screen-host"
    case service
    case sound
    case storageDays = "storage-days"
    case store
    case team
    case title
    case topic
    case tokenBurst = "token-burst"
    case tokenRate = "token-rate"
    case unhealthyAfter = "unhealthy-after"
    case uniqueID = "unique-id"
    case unmarkedCertificates = "unmarked-certificates"

    /// Whether the key is of the commands that are clients, `send` and `agent`, and of no other.
    ///
    /// One file may hold those of all commands: each takes its own.
    var isOfClients: Bool {
        switch self {
        case .alert, .allow, .app, .badge, .ca, .certificate, .code, .collapseID, .connectionsPerHour, .desktop,
            .expiration,
            .folder, .identity, .key, .keyID, .language, .longestPause, .payload, .priority, .pushType, .screen,
            .screenHost,
            .service, .sound, .team, .title, .topic:
            true
        default: isOfRelay
        }
    }

    /// Whether the key is of `herald relay`, and of no other command.
    var isOfRelay: Bool {
        switch self {
        case .apiToken, .apps, .console, .consoleToken, .database, .feedback, .feedbackEvery, .interface, .lease,
            .relayHost, .relayPort, .relayWindow, .retryFor, .unhealthyAfter:
            true
        default: false
        }
    }

    /// What a key's value looks like.
    enum Shape: Sendable {
        case text
        case texts
        case number
        case flag
        /// A list of mappings, which only the file can hold.
        case blocks
    }

    var shape: Shape {
        switch self {
        case .apps: .blocks
        case .relayPort, .relayWindow: .number
        case .apiToken, .console, .consoleToken, .database, .feedback, .feedbackEvery, .interface, .lease,
            .relayHost, .retryFor, .unhealthyAfter:
            .text
        case .app, .broadcastApps, .drill, .hostname, .language, .newsstandTopic: .texts
        case .acceptNonJSON, .demo, .desktop, .payloadDrills, .payloadDrillsInPublic: .flag
        case .activationPort, .apiPort, .appsPerDevice, .backgroundBurst, .backgroundPerHour, .badge, .binaryInHand,
            .binaryPayloadSize, .binaryPort, .channelLimit, .connectionsPerHour, .consolePort, .deviceCertificateDays,
            .devicePort, .feedbackPort, .feedbackSize, .journalDays, .journalSize, .notificationMemory, .priority,
            .screen, .storageDays, .tokenBurst, .tokenRate:
            .number
        case .alert, .allow, .ca, .certificate, .clock, .code, .collapseID, .consoleHost, .data, .environment,
            .expiration, .folder, .gracePeriod, .host, .identity, .keepAlive, .key, .keyID, .logFormat, .logLevel,
            .longestPause, .payload, .providerIdle, .pushType, .revocationGrace, .revocationLists, .screenHost,
            .service,
            .sound, .store, .team, .title, .topic, .uniqueID,
            .unmarkedCertificates:
            .text
        }
    }

    /// The key as an environment variable.
    var variable: String {
        "HERALD_" + rawValue.uppercased().replacing("-", with: "_")
    }

    /// A value that would be right, for messages about one that is not.
    var example: String {
        switch self {
        case .apiToken: "relay-api.token"
        case .apps: "[{topic: com.example.app, certificate: provider.pem}]"
        case .console: "http://127.0.0.1:2190"
        case .consoleToken: "herald-data/run/admin.token"
        case .database: "sqlite:///var/lib/herald/queue.db"
        case .feedback: "push.example.com:2196"
        case .feedbackEvery: "1h"
        case .interface: "binary"
        case .lease: "60s"
        case .relayHost: "127.0.0.1"
        case .relayPort: "2192"
        case .relayWindow: "2000"
        case .retryFor: "24h"
        case .unhealthyAfter: "5m"
        case .acceptNonJSON, .demo, .desktop, .payloadDrills, .payloadDrillsInPublic: "true"
        case .activationPort: "2191"
        case .alert, .title: "Hello"
        case .allow: "alert,badge,sound"
        case .app: "[com.example.app]"
        case .badge: "1"
        case .ca: "ca.pem"
        case .certificate: "provider.pem"
        case .code: "QE370-66QYX-63696-B4MHP-SADJC-4R4MC-5BDH6-DN6NJ-2KPYP"
        case .collapseID: "match-7"
        case .connectionsPerHour: "120"
        case .expiration: "1h"
        case .folder: "herald-device"
        case .identity: "device.pem"
        case .language: "[de, en]"
        case .key: "AuthKey_ABCDE12345.p8"
        case .longestPause: "2m"
        case .keyID: "ABCDE12345"
        case .payload: "payload.json"
        case .priority: "10"
        case .pushType: "alert"
        case .screen: "8080"
        case .service: "push.example.com:2197"
        case .sound: "default"
        case .team: "TEAM123456"
        case .topic: "com.example.app"
        case .apiPort: "2197"
        case .appsPerDevice: "500"
        case .backgroundBurst: "3"
        case .backgroundPerHour: "3"
        case .binaryInHand: "1000"
        case .binaryPayloadSize: "2048"
        case .binaryPort: "2195"
        case .broadcastApps: "[com.example.app]"
        case .channelLimit: "10000"
        case .clock: "system"
        case .consoleHost, .host, .screenHost: "127.0.0.1"
        case .consolePort: "2190"
        case .data: "/var/lib/herald"
        case .deviceCertificateDays: "365"
        case .devicePort: "5223"
        case .drill: "[refuse --reason Unregistered --share 5% --for 10m]"
        case .environment: "production"
        case .feedbackPort: "2196"
        case .feedbackSize: "100000"
        case .gracePeriod: "10s"
        case .hostname: "[push.example.com]"
        case .journalDays: "7"
        case .journalSize: "512"
        case .keepAlive: "30m"
        case .logFormat: "text"
        case .logLevel: "info"
        case .newsstandTopic: "[com.example.magazine]"
        case .notificationMemory: "256"
        case .revocationGrace: "12h"
        case .revocationLists: "required"
        case .providerIdle: "75m"
        case .storageDays: "30"
        case .store: "sqlite"
        case .tokenBurst: "10000"
        case .tokenRate: "1000"
        case .uniqueID: "sandbox"
        case .unmarkedCertificates: "refused"
        }
    }

    /// The key that somebody who wrote `name` most likely meant.
    static func nearest(to name: String) -> SettingKey? {
        NearestWord.to(name.lowercased().replacing("_", with: "-"), among: allCases.map(\.rawValue))
            .flatMap(SettingKey.init(rawValue:))
    }
}
