import ArgumentParser
import HeraldDevice
import HeraldModel
import HeraldService

/// How often an agent may connect.
struct ReconnectOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The longest pause before connecting again, like 90s or 2m; the first is a second. (default: 2m)",
            valueName: "duration"
        )
    )
    var longestPause: String?

    @Option(
        help: ArgumentHelp(
            "Connection attempts in an hour at most; a quarter of them at once. (default: 120)",
            valueName: "number"
        )
    )
    var connectionsPerHour: Int?

    /// The limits of the command line, the environment and the configuration file.
    /// - Throws: `ValidationError` or ``CommandError/Code/configuration``.
    func limits(_ settings: Settings) throws -> ReconnectionLimits {
        var limits = ReconnectionLimits()
        if let text = try longestPause ?? settings.text(.longestPause) {
            guard let pause = DurationText.read(text), pause >= .milliseconds(100) else {
                throw ValidationError(text, isNot: "a longest pause: give 100ms or more, like 90s or 2m")
            }
            limits.longestPause = pause
        }
        if let number = try connectionsPerHour ?? settings.number(.connectionsPerHour) {
            guard (1...1_000_000).contains(number) else {
                throw ValidationError("\(number) connections in an hour are not possible: give 1 to 1000000.")
            }
            limits.attemptsPerHour = number
            limits.burst = max(1, number / 4)
        }
        return limits
    }
}
