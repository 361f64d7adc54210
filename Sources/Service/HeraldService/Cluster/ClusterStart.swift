import Foundation
import HeraldCluster
import HeraldNATS
import HeraldStores
import Logging
import Synchronization

/// Steps of a start that wait for the servers, or refuse them.
enum ClusterStart {
    /// The time between two looks at the servers and streams.
    static let look = Duration.seconds(5)
    /// The pause before the servers are asked again.
    private static let retry = Duration.seconds(1)
    /// The looks at one server that show a loss, before another server is asked.
    private static let looksAtServer = 4
    /// The time in which servers that have just started must serve reads.
    private static let firstRead = Duration.seconds(60)
    /// The time in which a start that is stopped may still say that the node leaves.
    static let leaveTime = Duration.seconds(2)
    /// The looks in a row that must show a loss: a paused leader knows after ten seconds that it is none.
    static let lossLooks = 6
    /// The looks in a row after which a loss is a warning: a leader that was paused or cut off shows old states before.
    static let lossWarning = 3

    /// Takes the node's name, and says so while it has to wait.
    static func take(_ membership: NodeMembership, onStep step: @escaping @Sendable (String) -> Void) async throws {
        let isWaiting = Atomic(false)
        try await membership.take { other in
            guard !isWaiting.exchange(true, ordering: .relaxed) else { return }
            let seconds = NodeNameMachine.silence.components.seconds
            step(
                other.map {
                    "the name \($0.node.text) is another folder's (\($0.folderName)), which has not signed off: "
                        + "waiting \(seconds) s for a sign of life"
                } ?? "waiting until the NATS servers serve reads and writes"
            )
        }
    }

    /// Repeats work until the servers answer: for a while after their own start, they serve no reads.
    /// - Throws: The error of the work, or ``CommandError/Code/unreachable`` after ``firstRead``.
    static func onceReadable<Value: Sendable>(
        _ link: EngineLink,
        onStep step: (String) -> Void,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now + firstRead
        var isFirst = true
        while true {
            do {
                return try await work()
            } catch  where isTemporary(error) {
                guard .now < end else {
                    throw CommandError(
                        .unreachable,
                        "\(link.serverName) does not serve the streams (\(error)): start the NATS servers that are "
                            + "down (herald cluster status), or restart \(link.serverName)"
                    )
                }
                if isFirst {
                    step("the NATS servers serve no reads yet: waiting up to \(firstRead.components.seconds) s")
                }
                isFirst = false
                try await Task.sleep(for: retry)
            }
        }
    }

    private static func isTemporary(_ error: any Error) -> Bool {
        switch error {
        case LogFailure.unavailable, LogFailure.behind, LogFailure.silent, JetStreamError.failed: true
        case JetStreamError.refused(let refusal): refusal.status == JetStreamRefusal.unavailable
        default: false
        }
    }

    /// The faults of the servers, after a while for those that may pass: servers that have just started answer late.
    static func faults(_ checks: EngineChecks, onStep step: (String) -> Void) async throws -> [ClusterFinding] {
        let end = ContinuousClock.now + EngineLink.firstConnection
        var isFirst = true
        while true {
            let found = await checks.servers()
            let refusals = found.filter { $0.severity == .refusal }
            guard !refusals.isEmpty, refusals.allSatisfy(\.mayPass), .now < end else { return found }
            if isFirst { step("\(refusals[0].text): waiting up to \(EngineLink.firstConnection.components.seconds) s") }
            isFirst = false
            try await Task.sleep(for: retry)
        }
    }

    /// The losses that the streams show again and again.
    ///
    /// A server that was the leader, and was paused or is cut off, shows old states for some seconds, or until it is left.
    static func lasting(
        _ streams: [LogStream],
        _ seen: inout SeenStreams,
        _ checks: EngineChecks,
        onStep step: (String) -> Void
    ) async throws -> [ClusterFinding] {
        let patience = look * (lossLooks - 1)
        let end = ContinuousClock.now + patience
        var looks = 0
        while true {
            let losses = await checks.look(streams, &seen).findings.filter { $0.severity == .refusal }
            guard !losses.isEmpty, .now < end else {
                if looks > 0 { checks.jetStream.connection.settle() }
                return losses
            }
            if looks == 0 {
                step(
                    "the NATS servers show less than they had: waiting up to \(patience.components.seconds) s for one that has more"
                )
            }
            looks += 1
            if looks.isMultiple(of: looksAtServer) {
                checks.jetStream.connection.leave(
                    "shows less than the NATS servers had: it may be cut off from the others"
                )
            }
            try await Task.sleep(for: retry)
        }
    }

    /// Looks for devices in the data folder, which a node keeps in the cluster.
    /// - Returns: Whether there are some: then the folder is a restored one, and must not make a new cluster.
    /// - Throws: ``CommandError/Code/configuration`` for the folder of a single machine.
    static func checkDevices(of journal: SQLiteStore, _ folder: DataFolder) async throws -> Bool {
        guard try await journal.hasContents() else { return false }
        guard FileManager.default.fileExists(atPath: folder.nodePath) else {
            throw CommandError(
                .configuration,
                "\(folder.path) has the devices of a single machine: take them into a new cluster with herald cluster import "
                    + "\(folder.path), or start with an empty folder"
            )
        }
        return true
    }

    /// Logs warnings.
    /// - Throws: ``CommandError/Code/refused`` with the first refusal.
    static func refuse(_ findings: [ClusterFinding], _ logger: Logger) throws {
        for finding in findings where finding.severity == .warning { logger.warning("\(finding.line)") }
        if let refusal = findings.first(where: { $0.severity == .refusal }) {
            throw CommandError(.refused, refusal.line)
        }
    }
}
