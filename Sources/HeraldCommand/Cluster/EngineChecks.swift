import Foundation
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import Logging

/// The checks of a cluster's NATS servers, at the start and while a node runs.
struct EngineChecks: Sendable {
    let configuration: ClusterConfiguration
    let jetStream: JetStream
    let clock: any WallClock

    /// The faults of the servers, from their monitoring ports.
    func servers() async -> [ClusterFinding] {
        guard !configuration.monitors.isEmpty else { return connectedServer }
        let reports = await ServerMonitors(addresses: configuration.monitors).reports()
        guard reports.contains(where: { $0.report != nil }) else {
            return [
                ClusterFinding(
                    .refusal,
                    "no address of cluster-monitor answers (\(reports[0].address.absoluteString) is the first)",
                    remedy: "set `http:` in the servers' configuration, and open that port to this machine"
                )
            ]
        }
        let check = ServerCheck(now: clock.now())
        return reports.flatMap { address, report in
            report.map { check.findings($0) } ?? [Self.silent(address.absoluteString)]
        }
    }

    /// The fault of the server that this node is connected to: all that can be checked without monitoring.
    private var connectedServer: [ClusterFinding] {
        guard let server = jetStream.connection.serverInfo else { return [] }
        let report = ServerReport(
            name: server.serverName,
            version: server.version,
            now: clock.now(),
            syncsAlways: true,
            memory: 0
        )
        return ServerCheck(now: clock.now()).findings(report)
    }

    private static func silent(_ address: String) -> ClusterFinding {
        ClusterFinding(
            .warning,
            "\(address) does not answer",
            remedy: "start that nats-server, or mend cluster-monitor"
        )
    }

    /// Compares the streams with what this node has seen of them, and notes their present state.
    /// - Returns: The streams that answer, and the faults of all; a refusal if they have lost something.
    func look(
        _ streams: some Sequence<LogStream>,
        _ seen: inout SeenStreams
    ) async -> (states: [LogStream: StreamInfo], findings: [ClusterFinding]) {
        var states: [LogStream: StreamInfo] = [:]
        var findings: [ClusterFinding] = []
        for stream in streams {
            do {
                let info = try await jetStream.streamInfo(stream.name)
                states[stream] = info
                let now = SeenStreams.Stream(created: info.created, lastSequence: info.state.lastSequence)
                if let loss = seen.note(stream.name, now) { findings.append(loss) }
            } catch .refused(let refusal) where refusal.code == JetStreamRefusal.streamNotFound {
                if let loss = seen.missing(stream.name) { findings.append(loss) }
            } catch {
                // A server that does not answer is told by the connection.
            }
        }
        return (states, findings + StreamCheck.findings(states.values))
    }
}
