import ArgumentParser
import Foundation
import HeraldConsole
import HeraldModel
import HeraldService
import NIOHTTP1

/// `herald status`: the running service, its listeners and its health.
struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show whether a service runs on the data folder, where it listens, and whether it is healthy.",
        discussion: """
            Exits 0 if the service is ready and healthy, else 1. With --wait it waits until then; you may start the \
            service afterwards, and if that ends, so does the wait. With --env it prints the addresses as variables for a shell or a CI job.

            Example:
              herald status
              herald status --wait 10 --json
              set -a; eval "$(herald status --wait 10 --env)"; set +a
            """
    )

    @Option(help: ArgumentHelp("How long to wait for the service, like 10 or 1m.", valueName: "time"))
    var wait: String?

    @Flag(help: "Print the addresses as NAME=value.")
    var env = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        if env, data.json { throw ValidationError("--env and --json exclude each other.") }
        guard let wait, DurationText.read(wait) == nil else { return }
        throw ValidationError(wait, isNot: "a time, like 10, 30s or 1m")
    }

    func run() async throws {
        let path = try data.path()
        let clock = ContinuousClock()
        let folder = DataFolder(path: path)
        let (begin, most) = (clock.now, wait.flatMap { DurationText.read($0) } ?? .zero)
        var service = ServeEnd()
        var report = await StatusReport(of: folder)
        while !report.isReady, clock.now < begin + most {
            let waited = Double((clock.now - begin).wholeMilliseconds) / 1000
            if let why = service.look(ServeRecord.read(from: folder), waited: waited) {
                throw CommandError(.unreachable, why)
            }
            try await Task.sleep(for: .milliseconds(100))
            report = await StatusReport(of: folder)
        }
        if data.json {
            try Terminal.sayJSON(report)
        } else if env, report.isReady, let listeners = report.listeners {
            ServiceVariables(listeners, folder: folder).lines.forEach(Terminal.sayExactly)
        } else {
            report.lines.forEach(env ? Terminal.complain : Terminal.say)
        }
        guard report.isReady else { throw ExitCode.failure }
    }
}

/// The running service as `herald status` prints it.
private struct StatusReport: Encodable {
    let data: String
    /// Whether the service is ready and healthy.
    let isReady: Bool
    let problems: [String]
    let warnings: [String]?
    let drills: [String]?
    let listeners: ListeningAddresses?
    let service: ServiceStatus?

    /// Asks the service that runs on a folder.
    init(of folder: DataFolder) async {
        data = folder.path
        let client = ControlClient(folder: folder)
        listeners = ListeningAddresses.read(from: folder)
        service = try? await client.ask(AdminAPI.status)
        let health = try? await client.health()
        warnings = health?.warnings
        drills = health?.drills
        isReady = listeners != nil && service != nil && health?.status == .ready
        problems = health.map(\.problems) ?? [StatusReport.silence(of: folder)]
    }

    /// The reason why no service answers.
    private static func silence(of folder: DataFolder) -> String {
        let start = "start one with `herald serve --data \(folder.path)`"
        do {
            try folder.checkOwner()
            return switch try folder.condition() {
            case .missing, .empty:
                "no service runs on \(folder.path), and there is no data folder: \(start), or name its folder with --data"
            case .ours:
                "no service answers on \(folder.path): \(start)"
            }
        } catch {
            return "\(error)"
        }
    }

    var lines: [String] {
        var lines = ["data           \(data)"]
        if let service {
            lines.append("service        Herald \(service.version), process \(service.pid), since \(service.started)")
            lines += listeners?.lines ?? []
            lines.append("devices        \(service.devicesConnected) connected")
            lines.append("notifications  \(service.notificationsWaiting) waiting")
            lines += StatusReport.lines(service)
        }
        let health = isReady ? ["ready"] : problems.isEmpty ? ["starting"] : problems
        lines += health.map { "health         \($0)" } + (warnings ?? []).map { "warning        \($0)" }
        return lines + (drills ?? []).map { "drill          \($0)" }
    }

    /// The lines about the journal and the disk, and about what is unusual.
    private static func lines(_ service: ServiceStatus) -> [String] {
        let environments = service.environments.map(\.rawValue).joined(separator: " and ")
        let catching = service.catching.map { state -> String in
            let until = state.until.map { "until \($0)" } ?? "until the service stops"
            return "payloads, \(state.messages) of at most \(state.limit) kept, \(until)"
        }
        let clock = service.clockMovedSeconds.map { "moved by \($0) s: the service's time is \(service.now)" }
        let facts: [(String, String?)] = [
            ("apps", environments.isEmpty ? nil : "in \(environments)"),
            ("journal", service.journal.map { "from \($0.first) to \($0.last)" }),
            ("disk", service.diskFreeBytes.map { "\($0 >> 20) MiB free" }),
            ("console", service.mode == .full ? nil : service.mode.rawValue),
            ("catching", catching),
            ("clock", clock),
        ]
        return facts.compactMap { name, text in
            text.map { name.padding(toLength: 15, withPad: " ", startingAt: 0) + $0 }
        }
    }

    private enum CodingKeys: String, CodingKey {
        case data
        case isReady = "ready"
        case problems
        case warnings
        case drills
        case listeners
        case service
    }
}
