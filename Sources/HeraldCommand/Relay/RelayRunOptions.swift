import ArgumentParser
import Configuration

/// The options of `herald relay run`.
struct RelayRunOptions: ParsableArguments {
    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup var app: RelayAppOptions

    @Option(help: ArgumentHelp("production or sandbox. (default: production)", valueName: "environment"))
    var environment: String?

    @Option(help: ArgumentHelp("Where health, metrics and the API are. (default: 127.0.0.1)", valueName: "address"))
    var relayHost: String?

    @Option(help: ArgumentHelp("The port of health, metrics and the API. (default: 2192)", valueName: "port"))
    var relayPort: Int?

    @Option(
        help: ArgumentHelp(
            "The file with the API's bearer token; made if it is not there. Without it: no API.",
            valueName: "file"
        )
    )
    var apiToken: String?

    @Option(help: ArgumentHelp("How long a claim lasts if its relay dies. (default: 60s)", valueName: "time"))
    var lease: String?

    @Option(help: ArgumentHelp("How many rows are in hand at one time. (default: 2000)", valueName: "n"))
    var relayWindow: Int?

    @Option(
        help: ArgumentHelp(
            "How long a row is tried that does not say so in give_up_at. (default: 24h)",
            valueName: "time"
        )
    )
    var retryFor: String?

    @Option(help: ArgumentHelp("How often feedback services are read. (default: 1h)", valueName: "time"))
    var feedbackEvery: String?

    @Option(
        help: ArgumentHelp("The age of the oldest unsent row that is unhealthy. (default: 5m)", valueName: "time")
    )
    var unhealthyAfter: String?

    @Option(help: ArgumentHelp("text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(help: ArgumentHelp("trace to critical. (default: info)", valueName: "level"))
    var logLevel: String?

    /// What was typed, by key.
    var typed: [SettingKey: ConfigContent] {
        var typed = app.typed
        let texts: [(SettingKey, String?)] = [
            (.environment, environment), (.relayHost, relayHost), (.apiToken, apiToken), (.lease, lease),
            (.retryFor, retryFor), (.feedbackEvery, feedbackEvery), (.unhealthyAfter, unhealthyAfter),
            (.logFormat, logFormat), (.logLevel, logLevel),
        ]
        for case (let key, let text?) in texts { typed[key] = .string(text) }
        for case (let key, let number?) in [(SettingKey.relayPort, relayPort), (.relayWindow, relayWindow)] {
            typed[key] = .int(number)
        }
        return typed
    }
}

/// The one app that the command line can name.
struct RelayAppOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The app. (default: every topic)", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("A provider certificate: PEM with certificate, chain and key.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A provider key (AuthKey_….p8), with --key-id and --team.", valueName: "file"))
    var key: String?

    @Option(
        help: ArgumentHelp("The key's identifier; read from the name of an AuthKey file if left out.", valueName: "id")
    )
    var keyId: String?

    @Option(help: ArgumentHelp("The team's identifier.", valueName: "id"))
    var team: String?

    @Option(help: ArgumentHelp("The service. (default: Apple's, by environment)", valueName: "host:port"))
    var service: String?

    @Option(
        help: ArgumentHelp("How the service is spoken to: http2 or binary. (default: http2)", valueName: "interface")
    )
    var interface: String?

    @Option(help: ArgumentHelp("The authority to trust, PEM. (default: the system's)", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("The feedback service, if there is one.", valueName: "host:port"))
    var feedback: String?

    @Option(
        help: ArgumentHelp("The console of a Herald: its journal is asked about uncertain sends.", valueName: "url")
    )
    var console: String?

    @Option(help: ArgumentHelp("The file with the console's bearer token.", valueName: "file"))
    var consoleToken: String?

    var typed: [SettingKey: ConfigContent] {
        let texts: [(SettingKey, String?)] = [
            (.topic, topic), (.certificate, certificate), (.key, key), (.keyID, keyId), (.team, team),
            (.service, service), (.interface, interface), (.ca, ca), (.feedback, feedback), (.console, console),
            (.consoleToken, consoleToken),
        ]
        var typed: [SettingKey: ConfigContent] = [:]
        for case (let key, let text?) in texts { typed[key] = .string(text) }
        return typed
    }
}
