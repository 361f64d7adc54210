import ArgumentParser
import Configuration
import Foundation
import HeraldModel
import HeraldRelay
import HeraldService
import Logging

/// The configuration of the relay's daemon.
struct RelayServiceConfiguration: SettingTarget {
    static let defaults = RelayServiceConfiguration()

    var relay = RelayConfiguration()
    var host = "127.0.0.1"
    var hostnames: [String] = []
    var port = 2192
    /// The file with the API's bearer token; without it there is no API.
    var tokenFile: String?
    var logFormat = HeraldLogHandler.Format.text
    var logLevel = Logger.Level.info
}

/// The settings of `herald relay run`, one row each.
enum RelayServiceSettings: SettingGroup {
    static let title = "Relay"
    static let rows: [Setting<RelayServiceConfiguration>] = [
        .choice("environment", \.relay.environment, valueName: "environment") {
            "The environment of rows and devices that name none; sandbox connects by the name sandbox.<host>."
        },
        .address("relay-host", \.host) { "Address of health, metrics and the API." },
        .list(
            "relay-hostname",
            \.hostnames,
            example: "relay.example.com",
            valueName: "name",
            wanted: "a host name or an address, without a port",
            show: { $0 },
            make: { names in
                for name in names where !ServerSettings.isHostname(name) { throw RefusedItem(text: name) }
                return names
            },
            help: { "A further name by which requests reach the relay, as through a proxy; may be repeated." }
        ),
        .port("relay-port", \.port) { "Port of health, metrics and the API; 0 for a free one." },
        .optional(SettingKey("api-token", example: "relay-api.token"), \.tokenFile, valueName: "file") {
            "The file with the API's bearer token; made if it is missing. Without this option there is no API."
        },
        .time("lease", \.relay.lease, in: .seconds(2) ... .seconds(3600)) {
            "How long a relay that died keeps its rows before another takes them."
        },
        .number("relay-window", \.relay.window, in: 1...100_000) { "Rows in flight at once." },
        .time("retry-for", \.relay.rules.longestLife, in: .seconds(1) ... .seconds(30 * 86_400), needsUnit: true) {
            "How long the relay tries a row without give_up_at."
        },
        .choice("in-doubt", \.relay.inDoubt, valueName: "choice") {
            "What becomes of a row that may have been sent, if no journal knows."
        },
        .time("feedback-every", \.relay.feedbackPause, in: .seconds(1) ... .seconds(7 * 86_400)) {
            "Interval between reads of the feedback services."
        },
        .days("keep-sent-days", \.relay.keepSent, in: 0...3650) {
            "How long rows are kept after they were sent; then the relay deletes them. 0 keeps them for ever."
        },
        .days("keep-refused-days", \.relay.keepUnsent, in: 0...3650) {
            "The same for refused, expired and failed rows, from the time of that outcome."
        },
        .time("unhealthy-after", \.relay.unhealthyAge, in: .seconds(1) ... .seconds(7 * 86_400)) {
            "Age of the oldest sendable row from which /health answers 503."
        },
        .choice("log-format", \.logFormat, valueName: "format") {
            "The form of the log. Text becomes entries with fields where systemd's journal reads standard error."
        },
        .choice("log-level", \.logLevel, valueName: "level") { "The least severe level that is logged." },
    ]
}

/// The options of `herald relay run`.
struct RelayRunOptions: ParsableArguments {
    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup(title: RelayAppSettings.title) var app: SettingOptions<RelayAppSettings>
    @OptionGroup(title: RelayServiceSettings.title) var service: SettingOptions<RelayServiceSettings>
}

/// The checked settings of `herald relay run`.
struct RelaySettings: Sendable {
    var database: DatabaseAddress
    var tables: TableNames
    var service = RelayServiceConfiguration()
    var apps: [RelayApp] = []

    init(_ options: RelayRunOptions, environment: [String: String]) throws {
        let typed = options.app.typed.merging(options.service.typed) { typed, _ in typed }
        let settings = try Settings(
            commandLine: typed,
            environment: environment,
            file: options.queue.config,
            of: .relay
        )
        (database, tables) = try options.queue.place(environment: environment)
        for row in RelayServiceSettings.rows { try row.read(settings, &service) }
        var app = RelayAppValues()
        for row in RelayAppSettings.rows { try row.read(settings, &app) }
        // A credential that was typed keeps the other kind from being taken from the environment or the file.
        if typed[.key] != nil, typed[.certificate] == nil { app.certificate = nil }
        if typed[.certificate] != nil, typed[.key] == nil { app.key = nil }
        if app.certificate != nil || app.key != nil {
            apps.append(try app.app(service.relay.environment, at: "the command line"))
        }
        if let file = settings.file {
            apps += try RelayAppFile.apps(path: file, environment: service.relay.environment)
        }
        guard !apps.isEmpty else {
            throw ValidationError(
                "No app: give --certificate, or --key with --key-id and --team, or `apps` in the configuration file."
            )
        }
    }
}
