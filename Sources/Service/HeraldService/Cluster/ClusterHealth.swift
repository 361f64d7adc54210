import CoreMetrics
import HeraldCluster
import HeraldNATS
import Logging
import Synchronization

/// The state of a cluster's servers and streams, as its node sees it.
final class ClusterHealth: Sendable {
    private let checks: EngineChecks
    private let streams: [LogStream]
    private let folder: DataFolder
    private let logger: Logger
    private let file: Mutex<NodeFile>
    private let silence = NodeSilence()
    private let faults = Gauge(label: "herald_cluster_faults")
    private let withoutLeader = Gauge(label: "herald_cluster_streams_without_leader")
    private let state = Mutex((leaderless: 0, findings: [ClusterFinding]()))

    init(_ entrance: ClusterEntrance, _ file: NodeFile) {
        checks = entrance.checks
        streams = entrance.streams
        folder = entrance.folder
        logger = entrance.logger
        self.file = Mutex(file)
    }

    /// The number of streams without a leader.
    var leaderless: Int { state.withLock { $0.leaderless } }

    /// Faults of servers and streams.
    var findings: [ClusterFinding] { state.withLock { $0.findings } }

    func measure() {
        faults.record(findings.count)
        withoutLeader.record(leaderless)
    }

    /// Watches servers and streams.
    /// - Throws: ``CommandError/Code/refused`` when they have lost what they had acknowledged.
    func watch(_ node: ClusterNode) async throws {
        var looksWithLoss = 0
        while !Task.isCancelled {
            do { try await Task.sleep(for: ClusterStart.look) } catch { return }
            try node.store.check()
            try FollowedStreams.check(node.lags)
            silence.look(at: node.nodes.all, logger)
            guard node.link.problem == nil else { continue }
            var seen = file.withLock { $0.seen }
            let before = seen
            let (states, ofStreams) = await checks.look(streams, &seen)
            let loss = ofStreams.first { $0.severity == .refusal }
            looksWithLoss = loss == nil ? 0 : looksWithLoss + 1
            let lasting = ofStreams.filter { $0.severity != .refusal || looksWithLoss >= ClusterStart.lossWarning }
            note(await checks.servers(of: states.values) + lasting, StreamCheck.leaderless(states.values).count)
            node.store.mailbox.setCount(max(0, records(in: states, node.nodes) - node.store.rings.claimCount))
            // A server that is down comes back: it does not count as a loss.
            if let loss, looksWithLoss >= ClusterStart.lossLooks { throw CommandError(.refused, loss.line) }
            if seen != before { save(seen) }
        }
    }

    private func note(_ found: [ClusterFinding], _ leaderless: Int) {
        let isNew = state.withLock { state in
            defer { state = (leaderless, found) }
            return state.findings != found
        }
        if isNew, found.isEmpty { logger.notice("the NATS servers are sound again") }
        if isNew { for finding in found { logger.warning("\(finding.line)") } }
    }

    /// The notifications and claims in the mailbox's streams, which have a barrier of each node.
    private func records(in states: [LogStream: StreamInfo], _ nodes: NodeList) -> Int {
        let barriers = nodes.all.count
        return states.reduce(0) { sum, state in
            guard case .mailbox = state.key else { return sum }
            return sum + max(0, Int(clamping: state.value.state.messages) - barriers)
        }
    }

    private func save(_ seen: SeenStreams) {
        let file = file.withLock { file in
            file.seen = seen
            return file
        }
        do {
            try file.write(folder)
        } catch {
            // The older state notices a loss too.
            logger.warning("could not note the state of the cluster", metadata: ["error": "\(error)"])
        }
    }
}
