import ArgumentParser
import HeraldConsole
import HeraldService

/// `herald drill`: failures on demand.
struct DrillCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drill",
        abstract: "Make failures on demand in the running service, to test senders.",
        discussion: """
            A drill affects only notifications that would be accepted. It ends after its time (an hour at most), with \
            the service, or by `herald drill stop`. In a cluster it is in force at all nodes. If a drill refuses or loses a notification, the service does not \
            deliver it, and the journal says so.

            Example:
              herald drill start refuse --reason TooManyRequests \\
                --retry-after 30s --share 20% --for 5m
              herald drill start latency --latency 200ms..2s
              herald drill start silence --share 1% --seed 7
              herald drill start streams --every 10s
              herald drill list
              herald drill stop --all
            """,
        subcommands: [DrillStart.self, DrillList.self, DrillRenew.self, DrillStop.self]
    )
}

/// `herald drill start`.
struct DrillStart: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Start a drill.",
        discussion: """
            refuse         the answer is a refusal (--reason), also with any
                           status and any text (--status), or without a body
            latency        the answer is delayed (--latency), the notification
                           is not
            silence        no answer ever comes; the notification is lost, or
                           with --accepted stored and delivered
            reset          RST_STREAM (INTERNAL_ERROR) in place of an answer;
                           lost or accepted as with silence
            refuse-stream  RST_STREAM (REFUSED_STREAM): it may be sent again
            goaway         GOAWAY in mid-batch: requests up to its last stream
                           are answered, later ones are ignored; with
                           --two-step a first GOAWAY ignores none yet
            streams        all connections get a limit of one stream
                           (--streams); with --every it alternates with the
                           usual limit
            drop           the connection closes without GOAWAY or TLS
                           close_notify
            shutdown       503 Shutdown, then GOAWAY with the reason Shutdown

            Example:
              herald drill start refuse --reason Unregistered \\
                --topic com.example.app --share 5% --seed 42
              herald drill start refuse --reason InternalServerError --first 2
              herald drill start refuse --status 502 --share 5%
              herald drill start goaway --share 1% --for 10m
            """
    )

    @OptionGroup var drill: DrillOptions

    @OptionGroup var data: DataOptions

    func validate() throws {
        do throws(DrillMistake) {
            try DrillReader.check(drill.request)
        } catch {
            throw ValidationError("This drill cannot be started: \(error.text).")
        }
    }

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entry = try await service.ask(AdminAPI.startDrill, body: drill.request)
        if data.json { return try Terminal.sayJSON(entry) }
        Terminal.say("drill \(entry.id): \(entry.what); until \(entry.ends), seed \(entry.seed)")
    }
}

/// `herald drill list`.
struct DrillList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the active drills.",
        discussion: """
            Example:
              herald drill list --json
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entries = try await service.ask(AdminAPI.drills)
        if data.json { return try Terminal.sayJSON(entries) }
        DrillText.say(entries)
    }
}

/// `herald drill renew`.
struct DrillRenew: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Give a drill with a lease its whole time again.",
        discussion: """
            A script that starts a drill with --lease renews it while it lives. If the script dies, the drill ends soon, \
            by the machine's clock.

            Example:
              herald drill renew 3
            """
    )

    @Argument(help: "The drill's number, as `herald drill start` printed it.")
    var id: Int

    @OptionGroup var data: DataOptions

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entry = try await service.ask(AdminAPI.renewDrill, [AdminAPI.drill(id)])
        if data.json { return try Terminal.sayJSON(entry) }
        DrillText.say([entry])
    }
}

/// `herald drill stop`.
struct DrillStop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Stop a drill, or all of them.",
        discussion: """
            Example:
              herald drill stop 3
              herald drill stop --all
            """
    )

    @Argument(help: "The drill's number, as `herald drill list` shows it.")
    var id: Int?

    @Flag(help: "All drills.")
    var all = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard (id != nil) != all else { throw ValidationError("Name a drill by its number, or --all.") }
    }

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entries =
            if let id {
                [try await service.ask(AdminAPI.stopDrill, [AdminAPI.drill(id)])]
            } else {
                try await service.ask(AdminAPI.stopDrills)
            }
        if data.json { return try Terminal.sayJSON(entries) }
        DrillText.say(entries)
    }
}

/// Drills as people read them.
private enum DrillText {
    static func say(_ entries: [DrillEntry]) {
        guard !entries.isEmpty else { return Terminal.say("no drill is active") }
        let isCluster = entries.contains { $0.nodes != nil }
        var table = TextTable(["ID", "LEFT", "HITS", "SEED", "FROM"] + (isCluster ? ["NODES"] : []) + ["WHAT"])
        for entry in entries {
            let nodes = (entry.nodes ?? []).joined(separator: ", ")
            table.add(
                ["\(entry.id)", "\(entry.wholeSecondsLeft) s", "\(entry.hits)", "\(entry.seed)", entry.from]
                    + (isCluster ? [nodes] : []) + [entry.what]
            )
        }
        table.lines.forEach(Terminal.say)
    }
}
