import ArgumentParser
import Configuration

/// The options of `herald serve`.
///
/// Every one may be missing here, so that it can come from the environment or from the configuration file.
struct ServeOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A YAML file with the options below as keys.", valueName: "file"))
    var config: String?

    @Option(help: ArgumentHelp("The data folder; made if there is none. (default: ./herald-data)", valueName: "folder"))
    var data: String?

    @Option(
        help: ArgumentHelp("A further name or address for the server certificate; may be repeated.", valueName: "name")
    )
    var hostname: [String] = []

    @Option(help: ArgumentHelp("Where all doors but the console's listen. (default: 127.0.0.1)", valueName: "address"))
    var host: String?

    @Option(
        help: "The environment of clients that ask for no sandbox name: production or sandbox. (default: production)"
    )
    var environment: String?

    @Option(
        help: ArgumentHelp("The provider API. 0 picks a free port, here and below. (default: 2197)", valueName: "port")
    )
    var apiPort: Int?

    @Option(help: ArgumentHelp("The binary interface. (default: 2195)", valueName: "port"))
    var binaryPort: Int?

    @Option(help: ArgumentHelp("The feedback service. (default: 2196)", valueName: "port"))
    var feedbackPort: Int?

    @Option(help: ArgumentHelp("Devices, by MQTT. (default: 5223)", valueName: "port"))
    var devicePort: Int?

    @Option(help: ArgumentHelp("The activation of devices. (default: 2191)", valueName: "port"))
    var activationPort: Int?

    @Option(
        help: ArgumentHelp(
            "How long certificates are good that devices get there, in days. (default: 365)",
            valueName: "days"
        )
    )
    var deviceCertificateDays: Int?

    @Option(help: ArgumentHelp("Health, metrics and the admin API. (default: 2190)", valueName: "port"))
    var consolePort: Int?

    @Option(help: ArgumentHelp("Where the console's door listens. (default: 127.0.0.1)", valueName: "address"))
    var consoleHost: String?

    @Option(help: ArgumentHelp("Where notifications are kept: sqlite. (default: sqlite)", valueName: "store"))
    var store: String?

    @Flag(
        inversion: .prefixedNo,
        help: "Make a provider and a device for com.example.pushchat, and show what it receives."
    )
    var demo: Bool?

    @Option(help: ArgumentHelp("How long a notification waits at most, in days. (default: 30)", valueName: "days"))
    var storageDays: Int?

    @Option(help: ArgumentHelp("How long the journal is kept, in days. (default: 7)", valueName: "days"))
    var journalDays: Int?

    @Option(help: ArgumentHelp("How large the journal may grow, in MiB. (default: 512)", valueName: "size"))
    var journalSize: Int?

    @Option(
        help: ArgumentHelp(
            "How many background notifications an app may have on a device at once. (default: 3)",
            valueName: "count"
        )
    )
    var backgroundBurst: Int?

    @Option(help: ArgumentHelp("How many each hour after that; 0 for no limit. (default: 3)", valueName: "count"))
    var backgroundPerHour: Int?

    @Option(
        help: ArgumentHelp(
            "A topic owed one background notification a day though the device saves power; may be repeated.",
            valueName: "topic"
        )
    )
    var newsstandTopic: [String] = []

    @Option(
        help: ArgumentHelp(
            "How many notifications a device token may be sent at once. (default: 10000)",
            valueName: "count"
        )
    )
    var tokenBurst: Int?

    @Option(help: ArgumentHelp("How many each second after that; 0 for no limit. (default: 1000)", valueName: "count"))
    var tokenRate: Int?

    @Option(
        help: ArgumentHelp(
            "How much memory notifications may take, in MiB; past it they are refused. (default: 256)",
            valueName: "size"
        )
    )
    var notificationMemory: Int?

    @Option(
        help: ArgumentHelp("Answer with apns-unique-id in sandbox, or always. (default: sandbox)", valueName: "when")
    )
    var uniqueId: String?

    @Flag(
        name: .customLong("accept-non-json"),
        inversion: .prefixedNo,
        help: "Accept a payload that is not a JSON object, as APNs does; no app can read it."
    )
    var acceptNonJSON: Bool?

    @Option(
        help: ArgumentHelp(
            "The longest payload at the binary interface, 256 to 2048 bytes. (default: 2048)",
            valueName: "bytes"
        )
    )
    var binaryPayloadSize: Int?

    @Option(
        help: ArgumentHelp(
            "How many notifications of one connection may be in hand there. (default: 1000)",
            valueName: "count"
        )
    )
    var binaryInHand: Int?

    @Option(
        help: ArgumentHelp(
            "The most dead tokens that one connection to the feedback service is told of. (default: 100000)",
            valueName: "count"
        )
    )
    var feedbackSize: Int?

    @Option(
        help: ArgumentHelp(
            "An app that may have broadcast channels; may be repeated; all or none. (default: all)",
            valueName: "bundle id"
        )
    )
    var broadcastApps: [String] = []

    @Option(
        help: ArgumentHelp("How many channels an app may have in one environment. (default: 10000)", valueName: "count")
    )
    var channelLimit: Int?

    @Option(help: ArgumentHelp("The longest keep alive of a device. (default: 30m)", valueName: "time"))
    var keepAlive: String?

    @Option(help: ArgumentHelp("How many apps a device may register. (default: 500)", valueName: "n"))
    var appsPerDevice: Int?

    @Option(help: ArgumentHelp("How long a stop waits for what was accepted. (default: 10s)", valueName: "time"))
    var gracePeriod: String?

    @Option(
        help: ArgumentHelp(
            "How long a revocation list counts after its successor was due. (default: 0s)",
            valueName: "time"
        )
    )
    var revocationGrace: String?

    @Option(
        help: ArgumentHelp(
            "Whether peers need a revocation list to be let in: required or optional. (default: required)",
            valueName: "need"
        )
    )
    var revocationLists: String?

    @Option(
        help: ArgumentHelp(
            "What provider certificates without an environment are for: refused, production, sandbox or both. "
                + "(default: refused)",
            valueName: "environment"
        )
    )
    var unmarkedCertificates: String?

    @Option(
        help: ArgumentHelp("How long a provider's connection may be silent. (default: 75m)", valueName: "time")
    )
    var providerIdle: String?

    @Option(
        help: ArgumentHelp("A drill to begin with: 'refuse --reason R --for 10m'; may be repeated.", valueName: "words")
    )
    var drill: [String] = []

    @Flag(inversion: .prefixedNo, help: "Let payloads ask for drills; not for production.")
    var payloadDrills: Bool?

    @Flag(inversion: .prefixedNo, help: "Let payloads ask for drills where everybody can reach the service.")
    var payloadDrillsInPublic: Bool?

    @Option(help: ArgumentHelp("How log lines look: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp(
            "The least that is logged: trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"
        )
    )
    var logLevel: String?

    @Option(
        help: ArgumentHelp(
            "The service's time, for tests: system, adjustable, +1h, -7d, or a moment. (default: system)",
            valueName: "clock"
        )
    )
    var clock: String?

    /// The options that were typed.
    var typed: [SettingKey: ConfigContent] {
        let texts: [(SettingKey, String?)] = [
            (.data, data), (.host, host), (.consoleHost, consoleHost), (.environment, environment), (.store, store),
            (.uniqueID, uniqueId), (.keepAlive, keepAlive), (.gracePeriod, gracePeriod), (.logFormat, logFormat),
            (.logLevel, logLevel), (.clock, clock), (.revocationGrace, revocationGrace),
            (.revocationLists, revocationLists), (.unmarkedCertificates, unmarkedCertificates),
            (.providerIdle, providerIdle),
        ]
        let numbers: [(SettingKey, Int?)] = [
            (.apiPort, apiPort), (.binaryPort, binaryPort), (.feedbackPort, feedbackPort), (.devicePort, devicePort),
            (.activationPort, activationPort), (.consolePort, consolePort), (.storageDays, storageDays),
            (.journalDays, journalDays), (.journalSize, journalSize), (.appsPerDevice, appsPerDevice),
            (.backgroundBurst, backgroundBurst), (.backgroundPerHour, backgroundPerHour), (.tokenBurst, tokenBurst),
            (.tokenRate, tokenRate), (.notificationMemory, notificationMemory), (.channelLimit, channelLimit),
            (.deviceCertificateDays, deviceCertificateDays), (.binaryPayloadSize, binaryPayloadSize),
            (.binaryInHand, binaryInHand), (.feedbackSize, feedbackSize),
        ]
        let flags: [(SettingKey, Bool?)] = [
            (.demo, demo), (.acceptNonJSON, acceptNonJSON), (.payloadDrills, payloadDrills),
            (.payloadDrillsInPublic, payloadDrillsInPublic),
        ]
        var typed: [SettingKey: ConfigContent] = hostname.isEmpty ? [:] : [.hostname: .stringArray(hostname)]
        if !broadcastApps.isEmpty { typed[.broadcastApps] = .stringArray(broadcastApps) }
        if !drill.isEmpty { typed[.drill] = .stringArray(drill) }
        if !newsstandTopic.isEmpty { typed[.newsstandTopic] = .stringArray(newsstandTopic) }
        for case (let key, let text?) in texts { typed[key] = .string(text) }
        for case (let key, let number?) in numbers { typed[key] = .int(number) }
        for case (let key, let flag?) in flags { typed[key] = .bool(flag) }
        return typed
    }

    /// All three sources together.
    /// - Throws: ``CommandError/Code/configuration``.
    func configuration(environment: [String: String]) throws -> ServerConfiguration {
        try ServerConfiguration(Settings(commandLine: typed, environment: environment, file: config))
    }
}
