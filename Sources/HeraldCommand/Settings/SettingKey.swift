/// The options that may also stand in the configuration file and in the environment, each under one name.
///
/// The option `--api-port` is the key `api-port` of the file and the variable `HERALD_API_PORT`.
enum SettingKey: String, CaseIterable, Sendable {
    case acceptNonJSON = "accept-non-json"
    case activationPort = "activation-port"
    case apiPort = "api-port"
    case binaryPort = "binary-port"
    case broadcastApps = "broadcast-apps"
    case channelLimit = "channel-limit"
    case clock
    case consoleHost = "console-host"
    case consolePort = "console-port"
    case data
    case demo
    case devicePort = "device-port"
    case environment
    case feedbackPort = "feedback-port"
    case gracePeriod = "grace-period"
    case host
    case hostname
    case journalDays = "journal-days"
    case journalSize = "journal-size"
    case keepAlive = "keep-alive"
    case logFormat = "log-format"
    case logLevel = "log-level"
    case revocationGrace = "revocation-grace"
    case revocationLists = "revocation-lists"
    case storageDays = "storage-days"
    case store
    case uniqueID = "unique-id"
    case unmarkedCertificates = "unmarked-certificates"

    /// What a key's value looks like.
    enum Shape: Sendable {
        case text
        case texts
        case number
        case flag
    }

    var shape: Shape {
        switch self {
        case .broadcastApps, .hostname: .texts
        case .acceptNonJSON, .demo: .flag
        case .activationPort, .apiPort, .binaryPort, .channelLimit, .consolePort, .devicePort, .feedbackPort,
            .journalDays,
            .journalSize, .storageDays:
            .number
        case .clock, .consoleHost, .data, .environment, .gracePeriod, .host, .keepAlive, .logFormat, .logLevel,
            .revocationGrace, .revocationLists, .store, .uniqueID, .unmarkedCertificates:
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
        case .acceptNonJSON, .demo: "true"
        case .activationPort: "2191"
        case .apiPort: "2197"
        case .binaryPort: "2195"
        case .broadcastApps: "[com.example.app]"
        case .channelLimit: "10000"
        case .clock: "system"
        case .consoleHost, .host: "127.0.0.1"
        case .consolePort: "2190"
        case .data: "/var/lib/herald"
        case .devicePort: "5223"
        case .environment: "production"
        case .feedbackPort: "2196"
        case .gracePeriod: "10s"
        case .hostname: "[push.example.com]"
        case .journalDays: "7"
        case .journalSize: "512"
        case .keepAlive: "30m"
        case .logFormat: "text"
        case .logLevel: "info"
        case .revocationGrace: "12h"
        case .revocationLists: "required"
        case .storageDays: "30"
        case .store: "sqlite"
        case .uniqueID: "sandbox"
        case .unmarkedCertificates: "refused"
        }
    }

    /// The key that somebody who wrote `name` most likely meant.
    static func nearest(to name: String) -> SettingKey? {
        let folded = name.lowercased().replacing("_", with: "-")
        let ranked = allCases.map { ($0, distance(folded, $0.rawValue)) }.min { $0.1 < $1.1 }
        guard let (key, distance) = ranked, distance <= max(2, key.rawValue.count / 3) else { return nil }
        return key
    }

    /// How many letters must be added, removed or changed to turn one word into the other.
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (index, letter) in left.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in 1...max(1, right.count) where column <= right.count {
                let change = diagonal + (letter == right[column - 1] ? 0 : 1)
                diagonal = row[column]
                row[column] = min(change, row[column] + 1, row[column - 1] + 1)
            }
        }
        return row[right.count]
    }
}
