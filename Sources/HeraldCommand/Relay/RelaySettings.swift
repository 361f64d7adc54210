import ArgumentParser
import Foundation
import HeraldModel
import HeraldRelay
import Logging

/// All that `herald relay run` can be told, checked.
struct RelaySettings: Sendable {
    var database: DatabaseAddress
    var relay = RelayConfiguration()
    var apps: [RelayApp]
    var host = "127.0.0.1"
    var port = 2192
    /// The file that holds the bearer token of the API; nil: there is none.
    var tokenFile: String?
    var logFormat = HeraldLogHandler.Format.text
    var logLevel = Logger.Level.info

    init(_ options: RelayRunOptions, environment: [String: String]) throws {
        let settings = try Settings(commandLine: options.typed, environment: environment, file: options.queue.config)
        database = try options.queue.address(environment: environment)
        relay.environment = try RelaySettings.choice(settings, .environment) ?? .production
        relay.lease = try RelaySettings.span(settings, .lease, .seconds(2)...(.seconds(3600))) ?? relay.lease
        relay.window = try RelaySettings.number(settings, .relayWindow, 1...100_000) ?? relay.window
        relay.rules.retry.longestLife =
            try RelaySettings.span(settings, .retryFor, .seconds(1)...(.seconds(30 * 86_400)))
            ?? relay.rules.retry.longestLife
        relay.feedbackPause =
            try RelaySettings.span(settings, .feedbackEvery, .seconds(1)...(.seconds(7 * 86_400)))
            ?? relay.feedbackPause
        relay.unhealthyAge =
            try RelaySettings.span(settings, .unhealthyAfter, .seconds(1)...(.seconds(7 * 86_400)))
            ?? relay.unhealthyAge
        host = try settings.text(.relayHost) ?? host
        port = try RelaySettings.number(settings, .relayPort, 0...65_535) ?? port
        tokenFile = try settings.text(.apiToken)
        logFormat = try RelaySettings.choice(settings, .logFormat) ?? logFormat
        logLevel = try RelaySettings.choice(settings, .logLevel) ?? logLevel
        let one = RelayAppValues(
            topics: try settings.text(.topic).map { [$0] } ?? [],
            certificate: options.app.key == nil ? try settings.text(.certificate) : options.app.certificate,
            key: options.app.certificate == nil ? try settings.text(.key) : options.app.key,
            keyID: try settings.text(.keyID),
            team: try settings.text(.team),
            service: try settings.text(.service),
            interface: try settings.text(.interface),
            ca: try settings.text(.ca),
            feedback: try settings.text(.feedback),
            console: try settings.text(.console),
            consoleToken: try settings.text(.consoleToken)
        )
        apps = []
        if one.certificate != nil || one.key != nil {
            apps.append(try one.app(relay.environment, at: "the command line"))
        }
        if let file = options.queue.config ?? environment["HERALD_CONFIG"] {
            apps += try RelayAppFile.apps(path: file, environment: relay.environment)
        }
        guard !apps.isEmpty else {
            throw ValidationError(
                "Say who sends: --certificate, or --key with --key-id and --team; or `apps` in the configuration file."
            )
        }
    }

    private static func number(_ settings: Settings, _ key: SettingKey, _ range: ClosedRange<Int>) throws -> Int? {
        guard let number = try settings.number(key) else { return nil }
        guard range.contains(number) else {
            throw CommandError(
                .configuration,
                "`\(key.rawValue)` must be from \(range.lowerBound) to \(range.upperBound): write for example "
                    + "`\(key.rawValue): \(key.example)`"
            )
        }
        return number
    }

    private static func span(
        _ settings: Settings,
        _ key: SettingKey,
        _ range: ClosedRange<Duration>
    ) throws -> Duration? {
        guard let text = try settings.text(key) else { return nil }
        guard let span = DurationText.read(text), range.contains(span) else {
            throw CommandError(
                .configuration,
                "`\(key.rawValue)` must be a span of time from \(range.lowerBound) to \(range.upperBound): write for example "
                    + "`\(key.rawValue): \(key.example)`"
            )
        }
        return span
    }

    private static func choice<Value: RawRepresentable & CaseIterable>(
        _ settings: Settings,
        _ key: SettingKey
    ) throws -> Value? where Value.RawValue == String {
        guard let text = try settings.text(key) else { return nil }
        guard let value = Value(rawValue: text) else {
            let words = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw CommandError(.configuration, "`\(key.rawValue)` must be one of \(words)")
        }
        return value
    }
}
