import ArgumentParser
import Foundation
import HeraldExam
import HeraldModel
import HeraldService
import UnixSignals

/// `herald exam`: how a sender behaves on a bad day.
struct ExamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exam",
        abstract: "Examine how a sender of push notifications behaves on a bad day.",
        discussion: """
            Starts a service of its own, makes it refuse, stall and hang up, and says what became of each push. Reports are \
            written as text, HTML, JUnit XML and JSON. Exits 1 if a required scenario fails, or if no push comes at all.

            The sender runs in a private network, where api.push.apple.com leads to the exam and nothing else can be \
            reached; with --host and --hook it runs in this machine's network.

            Example:
              herald exam --adapter 'python3 aioapns_adapter.py' --name 'aioapns 4.0'
              herald exam --run './send.py --host {host} --port {port} --ca {ca} --key {key} \\
                --key-id {key_id} --team {team} --topic {topic} --tokens {tokens}'
            """
    )

    @OptionGroup(title: "Sender") var sender: ExamSenderOptions

    @Option(
        help: ArgumentHelp("Only these scenarios, separated by commas.", valueName: "scenarios"),
        transform: ExamCommand.identifiers
    )
    var only: Set<String>?

    @Option(
        help: ArgumentHelp("All but these scenarios, separated by commas.", valueName: "scenarios"),
        transform: ExamCommand.identifiers
    )
    var skip: Set<String>?

    @Flag(help: "List the scenarios, and examine nothing.")
    var list = false

    @Option(
        help: ArgumentHelp("How long the sender may be silent (default: 40s).", valueName: "duration"),
        transform: ExamCommand.silence
    )
    var patience: Duration?

    @Option(help: ArgumentHelp("The folder of the reports (default: the current one).", valueName: "folder"))
    var out: String?

    @Option(
        help: ArgumentHelp(
            "An earlier report in JSON: exit 1 for scenarios that have become worse, and for no others.",
            valueName: "file"
        )
    )
    var baseline: String?

    @Option(help: ArgumentHelp("Another name for 127.0.0.1 by which the sender finds the service.", valueName: "name"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            "The service's port (default: 443 in the private network, else a free one).",
            valueName: "port"
        )
    )
    var port: Int?

    @Option(
        help: ArgumentHelp(
            "A data folder that stays, with the authority and the key of the sender, for a server behind --hook.",
            valueName: "folder"
        )
    )
    var data: String?

    /// The folder of a run in the private network.
    @Option(help: .private)
    var inside: String?

    func validate() throws {
        guard !list else { return }
        try sender.check()
        if let port, !(0...65_535).contains(port) { throw ValidationError("--port is a number from 0 to 65535") }
        if sender.hook != nil, data == nil {
            throw ValidationError("--hook needs --data, the folder with the authority and the key for your server")
        }
        _ = try scenarios()
    }

    func run() async throws {
        guard !list else { return Self.sayScenarios() }
        let former = try baseline.map(Self.report)
        if let inside { return try await examine(in: inside, isPrivate: true, former) }
        // The path of a socket has at most 107 bytes.
        let temporary = FileManager.default.temporaryDirectory.path
        let scratch = (temporary.utf8.count > 60 ? "/tmp" : temporary) + "/herald-exam-\(UUID().uuidString.prefix(8))"
        do {
            try FileManager.default.createDirectory(
                atPath: scratch,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw CommandError(.folder, "cannot make \(scratch): \(error.localizedDescription)")
        }
        defer { try? FileManager.default.removeItem(atPath: scratch) }
        guard host == nil, sender.hook == nil else { return try await examine(in: scratch, isPrivate: false, former) }
        let network = PrivateNetwork(scratch: scratch)
        if let failure = network.failure() {
            Terminal.say("network    no private one on this machine (\(failure)); the sender can reach others")
            return try await examine(in: scratch, isPrivate: false, former)
        }
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let arguments = [program] + CommandLine.arguments.dropFirst() + ["--inside", scratch]
        let status = try await ExamRerun(network: network, arguments: arguments).status()
        if status != 0 { throw ExitCode(status) }
    }

    /// Examines the sender, and writes the reports.
    private func examine(in scratch: String, isPrivate: Bool, _ former: ExamReport?) async throws {
        let exam = try exam(in: scratch, isPrivate: isPrivate)
        try prepareFolder()
        let report = try await ExamRerun.untilStopped {
            try await exam.run(
                began: { place in
                    let network = isPrivate ? "nothing can reach Apple" : "in this machine's network"
                    Terminal.say("stage      \(place.host):\(place.port), with a clock of its own; \(network)")
                    if sender.hook != nil {
                        Terminal.say(
                            "           ca \(place.authorities), key \(place.key) (\(place.keyID), team \(place.team))"
                        )
                        Terminal.say("           topic \(place.topic)")
                    }
                },
                progress: { $0.lines.forEach(Terminal.say) }
            )
        }
        report.summary.forEach(Terminal.say)
        try write(report)
        try judge(report, former)
    }

    private func exam(in scratch: String, isPrivate: Bool) throws -> Exam {
        var exam = Exam(
            sender.kind,
            name: sender.title,
            data: data ?? "\(scratch)/data",
            scratch: scratch,
            version: "Herald \(Version.number)"
        )
        exam.scenarios = try scenarios()
        if let patience { exam.patience = patience }
        exam.hosts = isPrivate ? PrivateNetwork.names : [host ?? "localhost"]
        exam.port = port ?? (isPrivate ? PrivateNetwork.port : 0)
        return exam
    }

    private static func silence(_ text: String) throws -> Duration {
        guard let duration = DurationText.read(text), (.seconds(1) ... .seconds(600)).contains(duration) else {
            throw ValidationError("a duration from 1s to 600s is wanted, like 45s")
        }
        return duration
    }

    private static func identifiers(_ text: String) throws -> Set<String> {
        let names = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        let known = Set(Scenario.all.map(\.id))
        guard let wrong = names.first(where: { !known.contains($0) }) else { return Set(names) }
        throw ValidationError("no scenario is named \(wrong.debugDescription); `herald exam --list` lists them")
    }

    /// The scenarios that ``only`` and ``skip`` leave.
    private func scenarios() throws -> [Scenario] {
        let chosen = Scenario.all.filter { only?.contains($0.id) ?? true && !(skip?.contains($0.id) ?? false) }
        guard !chosen.isEmpty else { throw ValidationError("--only and --skip leave no scenario") }
        return chosen
    }

    private static func sayScenarios() {
        var table = TextTable(["SCENARIO", "LEVEL", "WHAT HAPPENS", "SOURCE"])
        for scenario in Scenario.all {
            table.add([scenario.id, scenario.level.rawValue, scenario.title, scenario.source])
        }
        table.lines.forEach(Terminal.say)
    }

    // MARK: - Reports

    private var folder: String { out ?? "." }

    /// Makes the folder of the reports before the exam takes minutes.
    private func prepareFolder() throws {
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            throw CommandError(.folder, "cannot make \(folder): \(error.localizedDescription)")
        }
        guard FileManager.default.isWritableFile(atPath: folder) else {
            throw CommandError(.folder, "cannot write into \(folder): name another folder with --out")
        }
    }

    private func write(_ report: ExamReport) throws {
        let name =
            "exam-"
            + String(
                report.sender.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") ? $0 : "-" }.prefix(60)
            )
        let files = [("html", report.html), ("xml", report.junit), ("json", try report.json())]
        for (suffix, text) in files {
            let path = "\(folder)/\(name).\(suffix)"
            do {
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            } catch {
                throw CommandError(.file, "cannot write \(path): \(error.localizedDescription)")
            }
        }
        let paths = files.map { "\(folder == "." ? "" : folder + "/")\(name).\($0.0)" }
        Terminal.say("report     " + paths.joined(separator: "   "))
    }

    private static func report(_ path: String) throws -> ExamReport {
        do {
            return try ExamReport(json: Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw CommandError(.unusableFile, "\(path) is not a report of `herald exam` in JSON")
        }
    }

    private func judge(_ report: ExamReport, _ former: ExamReport?) throws {
        if report.isEmpty {
            let complaints = report.results.first { !$0.complaints.isEmpty }?.complaints ?? []
            complaints.forEach(Terminal.complain)
            throw CommandError(.refused, "not one push came from the sender")
        }
        guard let former else {
            if report.hasFailed { throw ExitCode.failure }
            return
        }
        let worse = report.worse(than: former)
        for result in worse { Terminal.say("worse      \(result.id): \(result.outcome.rawValue)") }
        if !worse.isEmpty { throw ExitCode.failure }
    }
}
