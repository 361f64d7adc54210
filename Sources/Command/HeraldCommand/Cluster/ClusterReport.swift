import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldService

/// The state of a cluster as `herald cluster status` prints it.
struct ClusterReport: Encodable {
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

    let nodes: [NodeTable.Entry]
    let servers: [Server]
    let streams: [Stream]
    let problems: [String]
    /// Advice, which is not a fault.
    let hint: String?
    let isFaulty: Bool

    private enum CodingKeys: CodingKey {
        case nodes, servers, streams, problems, hint
    }

    init(_ session: ClusterSession) async {
        let configuration = session.configuration
        let answers = await ServerMonitors(addresses: configuration.monitors).answers(session.clock)
        var findings = EngineChecks.findings(answers)
        servers = answers.map { Server($0, $1) }
        let (records, failure) = await Self.records(session)
        let partitions = records?.partitions ?? Partitions(count: configuration.partitions)
        let all = partitions.map(LogStream.all) ?? []
        let (states, failures) = await Self.states(of: all, session.checks)
        streams = states.map(Stream.init)
        let running = Set(answers.compactMap { $0.answer?.report.name })
        findings += StreamCheck.findings(of: failures, among: all.count)
        findings += StreamCheck.findings(states, running: running)
        if let failure, !states.isEmpty { findings.append(failure) }
        let table = await Self.table(session, records)
        nodes = table?.entries ?? []
        findings += table?.findings ?? []
        problems = findings.map(\.line)
        // A server that is behind takes over nothing.
        hint = findings.isEmpty ? LeaderBalance(states).hint : nil
        // Between servers without a route, what is never stored is lost.
        let isCut = !RouteCheck.broken(answers.compactMap { $0.answer?.routes }).isEmpty
        // One more server that fails stops a cluster of three.
        let lacksServer =
            answers.contains { $0.answer == nil }
            || states.contains { $0.cluster?.replicas?.contains { $0.offline == true } == true }
        isFaulty = isCut || lacksServer || findings.contains { $0.severity == .refusal }
    }

    /// The records, or why they cannot be shown.
    private static func records(_ session: ClusterSession) async -> (ClusterRecords?, ClusterFinding?) {
        do {
            return (try await session.records(), nil)
        } catch {
            let finding = ClusterFinding(
                .warning,
                "the nodes are not shown: \((error as? CommandError)?.message ?? "\(error)")",
                remedy: "then repeat the command"
            )
            return (nil, finding)
        }
    }

    private static func table(_ session: ClusterSession, _ records: ClusterRecords?) async -> NodeTable? {
        guard let records else { return nil }
        return try? await session.nodes(records)
    }

    private static func states(
        of streams: [LogStream],
        _ checks: EngineChecks
    ) async -> ([StreamInfo], [LogStream: JetStreamError]) {
        var states: [StreamInfo] = []
        var failures: [LogStream: JetStreamError] = [:]
        let answers = await checks.answers(about: streams)
        for stream in streams {
            switch answers[stream] {
            case .success(let state)?: states.append(state)
            case .failure(let error)?: failures[stream] = error
            case nil: break
            }
        }
        return (states, failures)
    }

    var lines: [String] {
        var lines = nodes.isEmpty ? [] : NodeTable.lines(nodes) + [""]
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
        if let hint { lines += ["", hint] }
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

extension ClusterReport.Server {
    init(_ address: URL, _ answer: ServerMonitors.Answer?) {
        self.init(
            address: address.absoluteString,
            name: answer?.report.name,
            version: answer?.report.version,
            syncAlways: answer?.report.syncsAlways,
            clockDifferenceMs: answer.map { ($0.report.now - $0.time).wholeMilliseconds },
            memoryBytes: answer?.report.memory
        )
    }
}
