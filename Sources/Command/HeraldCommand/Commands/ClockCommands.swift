import ArgumentParser
import Foundation
import HeraldConsole
import HeraldModel
import HeraldService

/// `herald clock`: the time of the running service.
struct ClockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clock",
        abstract: "Show, accept or move the time of the running service.",
        discussion: """
            You can move the time only if the service runs with --clock adjustable, or with any other clock than the \
            system's. Expiry, certificates, provider tokens, the journal and drills follow it; timeouts do not.

            After a jump of the machine's clock, Herald withholds notifications that look expired, for a day at most. If \
            the clock is wrong, set it right: Herald delivers them. If it is right, run `herald clock accept`: Herald \
            deletes them.

            Each node of a cluster has a clock of its own.

            Example:
              herald clock advance 30d
            """,
        subcommands: [ClockShow.self, ClockAccept.self, ClockAdvanceCommand.self],
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

    func run() async throws {
        let reading = try await ControlClient.ofService(in: data.folder()).ask(AdminAPI.clock)
        if data.json { return try Terminal.sayJSON(reading) }
        Terminal.say(reading.adjustable ? "\(reading.now) (can be moved)" : reading.now)
        guard let jump = reading.jumpSeconds else { return }
        Terminal.say("jumped by \(ClockWatch.text(.seconds(jump))): Herald withholds notifications that look expired")
        Terminal.say("if the clock is right, run `herald clock accept`")
    }
}

/// `herald clock accept`.
struct ClockAccept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Accept the machine's clock after a jump.",
        discussion: """
            Before the command returns, the service deletes the notifications that have expired by that clock. Without a \
            jump, nothing happens.

            Example:
              herald clock accept
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let reading = try await ControlClient.ofService(in: data.folder())
            .ask(AdminAPI.acceptClock)
        if data.json { return try Terminal.sayJSON(reading) }
        Terminal.say(reading.now)
    }
}

/// `herald clock advance`.
struct ClockAdvanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advance",
        abstract: "Move the service's time.",
        discussion: """
            Before the command returns, the service applies the new time: it closes connections with expired \
            certificates, and deletes expired notifications.

            Example:
              herald clock advance 1h
              herald clock advance 1h --back
            """
    )

    @Argument(help: "How far: 250ms, 90s, 30m, 1h, 30d.")
    var time: String

    @Flag(help: "Move it back instead of ahead.")
    var back = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        _ = try seconds()
    }

    func run() async throws {
        let reading = try await ControlClient.ofService(in: data.folder())
            .ask(AdminAPI.advanceClock, body: ClockAdvance(seconds: seconds()))
        if data.json { return try Terminal.sayJSON(reading) }
        Terminal.say(reading.now)
    }

    private func seconds() throws -> Double {
        guard let span = DurationText.read(time) else {
            throw ValidationError(time, isNot: "a time of at most a hundred years, like 90s, 1h or 30d")
        }
        let seconds = Double(span.wholeMilliseconds) / 1000
        return back ? -seconds : seconds
    }
}
