import ArgumentParser
import HeraldConsole

/// `herald drill`: a bad day on demand.
struct DrillCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drill",
        abstract: "Make the running service behave as APNs does on a bad day, for a while.",
        discussion: """
            A drill hits notifications that would be accepted, and always ends: after the time that it was given (an \
            hour at most), with the service, or by `herald drill stop`. Nothing is forged: what a drill refuses or loses \
            is not delivered, and the journal says so.

            Example:
              herald drill start refuse --reason TooManyRequests \\
                --retry-after 30s --share 20% --for 5m
              herald drill start latency --latency 200ms..2s
              herald drill start silence --share 1% --seed 7
              herald drill start streams --every 10s
              herald drill list
              herald drill stop --all
            """,
        subcommands: [DrillStart.self, DrillList.self, DrillStop.self]
    )
}

/// `herald drill start`.
struct DrillStart: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Begin a drill.",
        discussion: """
            refuse     the answer is a refusal (--reason)
            latency    the answer waits (--latency); the notification does not
            silence    no answer ever comes; the notification is lost, or with
                       --accepted stored and delivered
            goaway     GOAWAY in mid-batch: what came before it is answered,
                       nothing after it is looked at
            streams    SETTINGS tells all connections one stream (--streams),
                       with --every in turn with the usual number
            drop       the connection is closed without a word, in TLS either
            shutdown   503 Shutdown, then GOAWAY with the reason Shutdown

            Example:
              herald drill start refuse --reason Unregistered \\
                --topic com.example.app --share 5% --seed 42
              herald drill start goaway --share 1% --for 10m
            """
    )

    @OptionGroup var drill: DrillOptions

    @OptionGroup var data: DataOptions

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        do throws(DrillMistake) {
            try DrillReader.check(drill.request)
        } catch {
            throw ValidationError("This drill cannot be started: \(error.text).")
        }
    }

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entry = try await service.post("/v1/drills", body: drill.request, as: DrillEntry.self)
        if json { return try Terminal.sayJSON(entry) }
        Terminal.say("drill \(entry.id): \(entry.what); until \(entry.ends), seed \(entry.seed)")
    }
}

/// `herald drill list`.
struct DrillList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the drills that are on.",
        discussion: """
            Example:
              herald drill list --json
            """
    )

    @OptionGroup var data: DataOptions

    @Flag(help: "Print JSON: one array.")
    var json = false

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entries = try await service.get("/v1/drills", as: [DrillEntry].self)
        if json { return try Terminal.sayJSON(entries) }
        DrillText.say(entries)
    }
}

/// `herald drill stop`.
struct DrillStop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "End a drill, or all of them.",
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

    @Flag(help: "Print JSON: one array of what was stopped.")
    var json = false

    func validate() throws {
        guard (id != nil) != all else { throw ValidationError("Name a drill by its number, or --all.") }
    }

    func run() async throws {
        let service = try ControlClient.ofService(in: data.folder())
        let entries =
            if let id {
                [try await service.post("/v1/drills/\(id)/stop", as: DrillEntry.self)]
            } else {
                try await service.post("/v1/drills/stop", as: [DrillEntry].self)
            }
        if json { return try Terminal.sayJSON(entries) }
        DrillText.say(entries)
    }
}

/// Drills as people read them.
private enum DrillText {
    static func say(_ entries: [DrillEntry]) {
        guard !entries.isEmpty else { return Terminal.say("no drill is on") }
        var table = TextTable(["ID", "LEFT", "HITS", "SEED", "FROM", "WHAT"])
        for entry in entries {
            let left = "\(entry.wholeSecondsLeft) s"
            table.add(["\(entry.id)", left, "\(entry.hits)", "\(entry.seed)", entry.from, entry.what])
        }
        table.lines.forEach(Terminal.say)
    }
}
