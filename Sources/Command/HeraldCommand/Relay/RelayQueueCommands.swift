import ArgumentParser
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldRelay
import HeraldService

/// `herald relay status`: the state of the queue.
struct RelayStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the state of the queue.",
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
        if progress.scheduled > 0 { Terminal.say("\(progress.scheduled) queued rows wait for their time") }
        if progress.retrying > 0 { Terminal.say("\(progress.retrying) queued rows wait for the next attempt") }
        for (reason, count) in progress.waiting.sorted(by: { $0.key < $1.key }) {
            let meaning = RowReason(rawValue: reason).map { " (\($0.meaning))" } ?? ""
            Terminal.say("  \(count): \(LogText.escaped(reason, limit: 64))\(meaning)")
        }
        if let age = progress.oldestUnsentSeconds {
            Terminal.say("the oldest sendable row has waited for \(Int(age)) s")
        }
        if progress.inDoubt > 0 {
            Terminal.say(
                "\(progress.inDoubt) rows ended in doubt: they may have been sent; `herald relay retry --reason Uncertain` "
                    + "sends them again"
            )
        }
        for claim in progress.claims {
            let end = claim.lapsed ? "expired, another relay may take them" : "until \(claim.leaseEnd)"
            Terminal.say("\(claim.owner) has \(claim.rows) in flight (\(end))")
        }
        Terminal.say("devices: \(progress.devices), dead: \(progress.deadDevices)")
        for breaker in progress.breakers {
            Terminal.say(
                "marking of dead tokens is suspended for \(breaker.app) since \(breaker.since): \(breaker.deadTokens) of "
                    + "\(breaker.answers) tokens were reported dead; `herald relay revive --topic` resumes it"
            )
        }
        if progress.heldDevices > 0 {
            Terminal.say(
                "\(progress.heldDevices) tokens were reported dead while marking was suspended, and are not marked"
            )
        }
    }
}

/// `herald relay retry`: queues finished rows again.
struct RelayRetry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Queue refused, failed or expired rows again.",
        discussion: """
            They are sent as new notifications, with new identifiers.

            Example:
              herald relay retry --database sqlite:///var/lib/chat/queue.db \\
                --reason NoCredential
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup var rows: RowOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        guard !rows.ids.isEmpty || !rows.status.isEmpty || rows.reason != nil || rows.topic != nil else {
            throw ValidationError("Name the rows: by id, --status, --reason or --topic.")
        }
        let selection = try rows.selection([.refused, .failed, .expired], now: ServiceClock().now())
        let (notes, count) = try await queue.withStore { store in
            // First, since afterwards every row is queued.
            let leftOut = try await store.leftOut(selection, by: .retry)
            return (leftOut.notes(selection), try await store.retry(selection))
        }
        if json { return try Terminal.sayJSON(ChangeReport(changed: count, notes: notes)) }
        Terminal.say("\(count) rows are queued again")
        for note in notes ?? [] { Terminal.say(note) }
    }
}

/// `herald relay purge`: deletes finished rows.
struct RelayPurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Delete finished rows.",
        discussion: """
            Queued rows are never deleted. The answer has the number of rows, and when they were queued.

            Example:
              herald relay purge --database sqlite:///var/lib/chat/queue.db \\
                --older-than 7d --dry-run
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions
    @OptionGroup var rows: RowOptions

    @Flag(help: "Delete nothing; only say what would be deleted.")
    var dryRun = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        guard rows.olderThan != nil || !rows.ids.isEmpty || !rows.status.isEmpty else {
            throw ValidationError("Name the rows: by id, --older-than or --status.")
        }
        let selection = try rows.selection(FinalStatus.allCases, now: ServiceClock().now())
        let (notes, purged) = try await queue.withStore { store in
            let leftOut = try await store.leftOut(selection, by: .purge)
            return (leftOut.notes(selection), try await store.purge(selection, isDryRun: dryRun))
        }
        if json { return try Terminal.sayJSON(PurgeReport(purged, notes, isDryRun: dryRun)) }
        let span = purged.queued.map { ", queued from \($0.lowerBound.rfc3339) to \($0.upperBound.rfc3339)" } ?? ""
        Terminal.say("\(purged.count) rows \(dryRun ? "would be" : "are") deleted\(span)")
        for note in notes ?? [] { Terminal.say(note) }
    }
}

/// The deleted rows, as `--json` prints them.
private struct PurgeReport: Encodable {
    /// Number of deleted rows; 0 in a dry run.
    let changed: Int
    /// Number of rows that match.
    let matched: Int
    /// When the first and the last of them were queued; RFC 3339.
    let oldest: String?
    let newest: String?
    /// Why rows were left out; nil if none was.
    let notes: [String]?

    init(_ purged: PurgedRows, _ notes: [String]?, isDryRun: Bool) {
        self.notes = notes
        changed = isDryRun ? 0 : purged.count
        matched = purged.count
        oldest = purged.queued?.lowerBound.rfc3339
        newest = purged.queued?.upperBound.rfc3339
    }
}

/// The result of a revival, as `--json` prints it.
struct RevivalReport: Encodable {
    let changed: Int
    /// The apps whose breaker was reset.
    let breakers: [String]
    /// Why tokens were left out; nil if none was.
    let notes: [String]?
}

/// `herald relay revive`: marks dead tokens as live.
struct RelayRevive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revive",
        abstract: "Mark dead tokens as live again.",
        discussion: """
            For tokens that were marked dead by mistake: a wrong environment, a wrong credential. With --topic or --all \
            it also resumes marking; running relays follow within seconds.

            Example:
              herald relay revive --database sqlite:///var/lib/chat/queue.db \\
                --topic com.example.chat --since 2h
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions

    @Argument(help: "Device tokens. (default: all that match the options)")
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
            throw ValidationError("Name the tokens: one by one, or by --topic, --since or --all.")
        }
        for token in tokens where PushToken(token) == nil {
            throw ValidationError("'\(token.prefix(8))…' is not a device token: it must have \(PushToken.rule).")
        }
        let now = ServiceClock().now()
        var start: WallTime?
        if let since {
            guard let moment = SearchMoment.read(since, now: now) ?? SearchMoment.read("-\(since)", now: now) else {
                let text = LogText.escaped(since, limit: 64)
                throw ValidationError(
                    "--since '\(text)' \(DurationText.refusal(text)), or a time like 2026-11-21T02:34:56Z."
                )
            }
            start = moment
        }
        let selection = TokenSelection(tokens: tokens.isEmpty ? nil : tokens, topic: topic, since: start)
        let (notes, revival) = try await queue.withStore { store in
            let leftOut = try await store.leftOut(selection)
            return (RelayRevive.notes(leftOut), try await store.revive(selection))
        }
        if json {
            let report = RevivalReport(changed: revival.tokens, breakers: revival.breakers, notes: notes)
            return try Terminal.sayJSON(report)
        }
        Terminal.say("\(revival.tokens) tokens are live again")
        for note in notes ?? [] { Terminal.say(note) }
        for app in revival.breakers { Terminal.say("dead tokens of \(app) are marked again") }
    }
}

extension RelayRevive {
    /// One sentence for each token that was named and left out, and one for those of which nobody knows when they died.
    private static func notes(_ leftOut: LeftOutTokens) -> [String]? {
        var notes = leftOut.named.map { (token, isKnown, isDead) -> String in
            let start = "\(token.prefix(8))…"
            guard isKnown else { return "the queue does not know the token \(start)" }
            return isDead ? "the token \(start) is dead, and does not match" : "the token \(start) is not marked dead"
        }
        if leftOut.undated > 0 {
            notes.append("dead tokens without a readable time, which --since leaves out: \(leftOut.undated)")
        }
        return notes.isEmpty ? nil : notes
    }
}

/// `herald relay schema`: the tables, as SQL.
struct RelaySchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the SQL that creates the relay's tables.",
        discussion: """
            The relay creates its tables at the first start. This command is for databases where the relay lacks the \
            permission. It connects to nothing.

            Example:
              herald relay schema --database postgresql://localhost/chat | psql chat
            """
    )

    @OptionGroup var queue: RelayDatabaseOptions

    func run() async throws {
        let (address, tables) = try queue.place()
        Terminal.sayExactly(RelayStore.schema(address, tables: tables).trimmingCharacters(in: .newlines))
    }
}
