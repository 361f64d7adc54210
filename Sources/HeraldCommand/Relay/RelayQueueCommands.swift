import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldRelay

/// `herald relay status`: how the queue stands.
struct RelayStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Say how the queue stands.",
        discussion: """
            Example:
              herald relay status --database sqlite:///var/lib/chat/queue.db
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let progress = try await queue.withStore { try await $0.progress(at: ServiceClock().now()) }
        if json { return try Terminal.sayJSON(progress) }
        for status in ["queued"] + FinalStatus.allCases.map(\.rawValue) {
            Terminal.say("\(status): \(progress.rows[status] ?? 0)")
        }
        if progress.scheduled > 0 { Terminal.say("of those queued, \(progress.scheduled) wait for their time") }
        if progress.retrying > 0 { Terminal.say("of those queued, \(progress.retrying) wait for the next try") }
        for (reason, count) in progress.waiting.sorted(by: { $0.key < $1.key }) {
            Terminal.say("  \(count): \(LogText.escaped(reason, limit: 64))")
        }
        if let age = progress.oldestUnsentSeconds {
            Terminal.say("the oldest that could have been sent has waited for \(Int(age)) s")
        }
        for claim in progress.claims {
            let end = claim.isLapsed ? "lapsed, free to be taken over" : "until \(claim.leaseEnd)"
            Terminal.say("\(claim.owner) has \(claim.rows) in hand (\(end))")
        }
        Terminal.say("devices: \(progress.devices), dead: \(progress.deadDevices)")
        for brake in progress.brakes {
            Terminal.say(
                "the brake is on for \(brake.app) since \(brake.since): \(brake.deaths) of \(brake.answers) tokens came "
                    + "back dead; `herald relay revive --topic` takes it off"
            )
        }
        if progress.heldDevices > 0 {
            Terminal.say("\(progress.heldDevices) tokens came back dead while the brake was on, and are not marked")
        }
    }
}

/// `herald relay retry`: rows that are done are sent again.
struct RelayRetry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Queue rows again that were refused, failed or expired.",
        discussion: """
            They go out as new notifications, with new identifiers.

            Example:
              herald relay retry --database sqlite:///var/lib/chat/queue.db --reason NoCredential
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup var rows: RowOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        guard !rows.ids.isEmpty || !rows.status.isEmpty || rows.reason != nil || rows.topic != nil else {
            throw ValidationError("Say which rows: by id, --status, --reason or --topic.")
        }
        let selection = try rows.selection([.refused, .failed, .expired], now: ServiceClock().now())
        let count = try await queue.withStore { try await $0.retry(selection) }
        if json { return try Terminal.sayJSON(ChangeReport(changed: count)) }
        Terminal.say("\(count) rows are queued again")
    }
}

/// `herald relay purge`: rows that are done are deleted.
struct RelayPurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Delete rows that are done.",
        discussion: """
            What is queued is never deleted.

            Example:
              herald relay purge --database sqlite:///var/lib/chat/queue.db --older-than 7d
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup var rows: RowOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        guard rows.olderThan != nil || !rows.ids.isEmpty || !rows.status.isEmpty else {
            throw ValidationError("Say which rows: by id, --older-than or --status.")
        }
        let selection = try rows.selection(FinalStatus.allCases, now: ServiceClock().now())
        let count = try await queue.withStore { try await $0.purge(selection) }
        if json { return try Terminal.sayJSON(ChangeReport(changed: count)) }
        Terminal.say("\(count) rows are deleted")
    }
}

/// What was revived, as it is printed with `--json`.
struct RevivalReport: Encodable {
    let changed: Int
    /// The apps whose brake is off now.
    let brakes: [String]
}

/// `herald relay revive`: dead tokens are alive again.
struct RelayRevive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revive",
        abstract: "Make tokens alive again that were marked dead.",
        discussion: """
            For marks that were a mistake: a wrong environment, a wrong credential. With --topic or --all it takes the brake
            off too; relays see that within seconds.

            Example:
              herald relay revive --database sqlite:///var/lib/chat/queue.db --topic com.example.chat --since 2h
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions

    @Argument(help: "Device tokens. (default: all that the options choose)")
    var tokens: [String] = []

    @Option(help: ArgumentHelp("Only tokens of this topic.", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("Only tokens that died since, like 2h or 2026-11-21T02:34:56Z.", valueName: "when"))
    var since: String?

    @Flag(help: "All dead tokens.")
    var all = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        guard all || !tokens.isEmpty || topic != nil || since != nil else {
            throw ValidationError("Say which tokens: by themselves, --topic, --since or --all.")
        }
        for token in tokens where DeviceToken(token) == nil {
            throw ValidationError("A device token has 64 hexadecimal digits, and '\(token.prefix(8))…' has not.")
        }
        let now = ServiceClock().now()
        var start: WallTime?
        if let since {
            guard let moment = WallTime(rfc3339: since) ?? DurationText.read(since).map({ now - $0 }) else {
                throw ValidationError(
                    "'\(LogText.escaped(since, limit: 64))' is neither a moment like 2026-11-21T02:34:56Z nor like 2h."
                )
            }
            start = moment
        }
        let selection = DeviceSelection(tokens: tokens.isEmpty ? nil : tokens, topic: topic, since: start)
        let revival = try await queue.withStore { try await $0.revive(selection, at: now) }
        if json { return try Terminal.sayJSON(RevivalReport(changed: revival.tokens, brakes: revival.brakes)) }
        Terminal.say("\(revival.tokens) tokens are alive again")
        for app in revival.brakes { Terminal.say("the brake on \(app) is off") }
    }
}

/// `herald relay schema`: the tables, as SQL.
struct RelaySchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the SQL that makes the relay's tables.",
        discussion: """
            The relay makes them on its first start, if it may; this is for those who make them by hand. Nothing is connected
            to and nothing is changed.

            Example:
              herald relay schema --database postgresql://localhost/chat | psql chat
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions

    func run() async throws {
        Terminal.say(SQLRelayStore.schema(try queue.address()).trimmingCharacters(in: .newlines))
    }
}
