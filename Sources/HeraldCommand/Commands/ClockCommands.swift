import ArgumentParser
import Foundation
import HeraldConsole
import HeraldModel

/// `herald clock`: the time of the running service.
struct ClockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clock",
        abstract: "Show or move the time of the running service.",
        discussion: """
            Only a service that was started with --clock adjustable (or another clock than the system's) lets its time \
            be moved. Expiry, certificates, provider tokens, the journal and drills follow it; time-outs do not.

            Example:
              herald clock advance 30d
            """,
        subcommands: [ClockShow.self, ClockAdvanceCommand.self],
        defaultSubcommand: ClockShow.self
    )
}

/// `herald clock show`.
struct ClockShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the service's time.",
        discussion: """
            Example:
              herald clock show --json
            """
    )

    @OptionGroup var data: DataOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let reading = try await ControlClient.ofService(in: data.folder()).get("/v1/clock", as: ClockReading.self)
        if json { return try Terminal.sayJSON(reading) }
        Terminal.say(reading.adjustable ? "\(reading.now) (can be moved)" : reading.now)
    }
}

/// `herald clock advance`.
struct ClockAdvanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advance",
        abstract: "Move the service's time.",
        discussion: """
            When the command returns, what the new time means has happened: connections whose certificate has expired \
            are ended, and notifications that have expired are gone.

            Example:
              herald clock advance 1h
              herald clock advance 1h --back
            """
    )

    @Argument(help: "How far: 250ms, 90s, 30m, 1h, 30d.")
    var time: String

    @Flag(help: "Back instead of ahead.")
    var back = false

    @OptionGroup var data: DataOptions

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        _ = try seconds()
    }

    func run() async throws {
        let reading = try await ControlClient.ofService(in: data.folder())
            .post("/v1/clock/advance", body: ClockAdvance(seconds: seconds()), as: ClockReading.self)
        if json { return try Terminal.sayJSON(reading) }
        Terminal.say(reading.now)
    }

    private func seconds() throws -> Double {
        guard let span = DurationText.read(time) else {
            throw ValidationError("'\(LogText.escaped(time, limit: 64))' is not a time, like 90s, 1h or 30d.")
        }
        let seconds = Double(span.wholeMilliseconds) / 1000
        return back ? -seconds : seconds
    }
}
