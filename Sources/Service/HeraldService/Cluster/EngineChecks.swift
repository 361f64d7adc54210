import CoreMetrics
package import Foundation
package import HeraldCluster
import HeraldMailbox
package import HeraldModel
package import HeraldNATS
import Logging

/// The checks of a cluster's NATS servers, at the start and while a node runs.
package struct EngineChecks: Sendable {
    package let configuration: ClusterConfiguration
    package let jetStream: JetStream
    package let clock: any WallClock

    /// The faults of the servers, from their monitoring ports; all servers of the streams must be among them.
    package func servers(of streams: some Sequence<StreamInfo> = []) async -> [ClusterFinding] {
        guard !configuration.monitors.isEmpty else { return connectedServer }
        let answers = await ServerMonitors(addresses: configuration.monitors).answers(clock)
        Self.measureClocks(answers.compactMap(\.answer))
        let reports = answers.compactMap { $0.answer?.report }
        guard !reports.isEmpty else {
            return [
                ClusterFinding(
                    .refusal,
                    "no address of cluster-monitor answers (\(answers[0].address.absoluteString) is the first)",
                    remedy: "start the servers, set `http:` in their configuration, and open that port to this machine",
                    mayPass: true
                )
            ]
        }
        let findings = Self.findings(answers)
        // A server that does not answer has no name here.
        guard reports.count == answers.count else { return findings }
        return findings + StreamCheck.unmonitored(streams, monitored: Set(reports.map(\.name)))
    }

    /// The faults that the answers of monitoring addresses show.
    package static func findings(_ answers: [(address: URL, answer: ServerMonitors.Answer?)]) -> [ClusterFinding] {
        answers.flatMap { address, answer in
            answer.map { ServerCheck(now: $0.time).findings($0.report) } ?? [Self.silent(address.absoluteString)]
        } + RouteCheck.findings(answers.compactMap { $0.answer?.routes })
    }

    /// Sets the gauges of the servers' clocks, against this machine's.
    private static func measureClocks(_ answers: [ServerMonitors.Answer]) {
        for answer in answers {
            Gauge(label: "herald_cluster_server_clock_offset_seconds", dimensions: [("server", answer.report.name)])
                .record((answer.report.now - answer.time) / .seconds(1))
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
    package func look(
        _ streams: some Sequence<LogStream>,
        _ seen: inout SeenStreams
    ) async -> (states: [LogStream: StreamInfo], findings: [ClusterFinding]) {
        let answers = await answers(about: streams)
        var states: [LogStream: StreamInfo] = [:]
        var findings: [ClusterFinding] = []
        for stream in streams {
            switch answers[stream] {
            case .success(let info)?:
                states[stream] = info
                let now = SeenStreams.Stream(created: info.created, lastSequence: info.state.lastSequence)
                if let loss = seen.note(stream.name, now) { findings.append(loss) }
            case .failure(.refused(let refusal))? where refusal.code == JetStreamRefusal.streamNotFound:
                if let loss = seen.missing(stream.name) { findings.append(loss) }
            case .failure?, nil:
                // The connection reports a server that does not answer.
                break
            }
        }
        return (states, findings + StreamCheck.findings(states.values))
    }

    /// The present states of streams.
    package func answers(
        about streams: some Sequence<LogStream>
    ) async -> [LogStream: Result<StreamInfo, JetStreamError>] {
        await withTaskGroup(of: (LogStream, Result<StreamInfo, JetStreamError>).self) { group in
            for stream in streams { group.addTask { (stream, await info(of: stream)) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    /// The time for the state of a stream.
    private static let infoTime = Duration.seconds(3)

    private func info(of stream: LogStream) async -> Result<StreamInfo, JetStreamError> {
        do {
            return .success(try await jetStream.streamInfo(stream.name, within: Self.infoTime))
        } catch {
            return .failure(error)
        }
    }
}
