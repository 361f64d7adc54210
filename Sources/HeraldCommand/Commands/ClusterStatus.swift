import ArgumentParser
import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import Logging

/// `herald cluster status`: the state of a cluster's NATS servers and streams.
struct ClusterStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the NATS servers and the streams of a cluster.",
        discussion: """
            Takes the settings of the cluster from the options, from the environment, and from the file of --config. \
            Exits with 1 if something is wrong that could lose notifications.

            Example:
              herald cluster status --config /etc/herald/herald.yaml
            """
    )

    @Option(help: ArgumentHelp("A YAML file with the settings of `herald serve`.", valueName: "file"))
    var config: String?

    @OptionGroup(title: ClusterSettings.title) var options: SettingOptions<ClusterSettings>

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let settings = try ServerConfiguration(
            Settings(commandLine: options.typed, environment: environment, file: config)
        )
        let configuration = settings.cluster
        guard !configuration.servers.isEmpty else {
            throw CommandError(
                .configuration,
                "no cluster is configured: name its NATS servers with --cluster, or its settings with --config"
            )
        }
        let link = try EngineLink(configuration, logger: Logger(label: "herald") { _ in SwiftLogNoOpLogHandler() })
        try await link.waitUntilConnected()
        let report = await ClusterReport(configuration, link.jetStream)
        await link.connection.close()
        if json { try Terminal.sayJSON(report) } else { report.lines.forEach(Terminal.say) }
        if report.isFaulty { throw ExitCode.failure }
    }
}

/// The state of a cluster as `herald cluster status` prints it.
private struct ClusterReport: Encodable {
    struct Server: Encodable {
        let address: String
        let name: String?
        let version: String?
        let syncAlways: Bool?
        /// Positive if its clock is ahead of this machine's.
        let clockDifferenceMs: Int64?
        let memoryBytes: Int64?
    }

    struct Stream: Encodable {
        let name: String
        let leader: String?
        let replicas: [String]
        let messages: UInt64
        let bytes: UInt64
    }

    let servers: [Server]
    let streams: [Stream]
    let problems: [String]
    let isFaulty: Bool

    private enum CodingKeys: CodingKey {
        case servers, streams, problems
    }

    init(_ configuration: ClusterConfiguration, _ jetStream: JetStream) async {
        var findings: [ClusterFinding] = []
        var servers: [Server] = []
        for (address, answer) in await ServerMonitors(addresses: configuration.monitors).answers(ServiceClock()) {
            if let answer {
                findings += ServerCheck(now: answer.time).findings(answer.report)
            } else {
                findings.append(
                    ClusterFinding(
                        .warning,
                        "\(address.absoluteString) does not answer",
                        remedy: "start that nats-server"
                    )
                )
            }
            servers.append(
                Server(
                    address: address.absoluteString,
                    name: answer?.report.name,
                    version: answer?.report.version,
                    syncAlways: answer?.report.syncsAlways,
                    clockDifferenceMs: answer.map { ($0.report.now - $0.time).wholeMilliseconds },
                    memoryBytes: answer?.report.memory
                )
            )
        }
        let all = Partitions(count: configuration.partitions).map(LogStream.all) ?? []
        var states: [StreamInfo] = []
        var failures: [LogStream: JetStreamError] = [:]
        let checks = EngineChecks(configuration: configuration, jetStream: jetStream, clock: ServiceClock())
        let answers = await checks.answers(about: all)
        for stream in all {
            switch answers[stream] {
            case .success(let state)?: states.append(state)
            case .failure(let error)?: failures[stream] = error
            case nil: break
            }
        }
        findings += StreamCheck.findings(of: failures, among: all.count)
        self.servers = servers
        streams = states.map(Stream.init)
        findings += StreamCheck.findings(states)
        problems = findings.map(\.line)
        isFaulty = findings.contains { $0.severity == .refusal }
    }

    var lines: [String] {
        var lines: [String] = []
        if !servers.isEmpty {
            var table = TextTable(["SERVER", "VERSION", "SYNC", "CLOCK", "MEMORY"])
            for server in servers {
                table.add([
                    server.name ?? server.address, server.version ?? "does not answer",
                    server.syncAlways.map { $0 ? "always" : "late" } ?? "-",
                    server.clockDifferenceMs.map { "\($0) ms" } ?? "-",
                    server.memoryBytes.map { "\($0 >> 20) MiB" } ?? "-",
                ])
            }
            lines += table.lines + [""]
        }
        guard !streams.isEmpty else { return lines + problems }
        var table = TextTable(["STREAM", "LEADER", "REPLICAS", "MESSAGES", "KIB"])
        for stream in streams {
            table.add([
                stream.name, stream.leader ?? "none", stream.replicas.joined(separator: ", "), "\(stream.messages)",
                "\(stream.bytes >> 10)",
            ])
        }
        lines += table.lines
        if !problems.isEmpty { lines += [""] + problems }
        return lines
    }
}

extension ClusterReport.Stream {
    init(_ info: StreamInfo) {
        let replicas = info.cluster?.replicas ?? []
        self.init(
            name: info.configuration.name,
            leader: info.cluster?.leader,
            replicas: replicas.map { $0.current ? $0.name : "\($0.name) (\($0.lag ?? 0) behind)" },
            messages: info.state.messages,
            bytes: info.state.bytes
        )
    }
}
