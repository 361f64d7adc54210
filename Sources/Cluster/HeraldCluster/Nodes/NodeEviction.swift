import NIOCore
import Synchronization

/// Removes a node that is gone for good: its claims, so that nobody rings for it, and its record.
///
/// The record goes last. So an eviction that fails in between is made again.
package struct NodeEviction: Sendable {
    package enum Failure: Error, Hashable, CustomStringConvertible {
        /// The node has renewed its record since it was read.
        case cameBack(NodeName)
        /// The servers did not take all removals.
        case unavailable(NodeName)

        package var description: String {
            switch self {
            case .cameBack(let node): "\(node.text) gives a sign of life again: it is not removed"
            case .unavailable(let node):
                "the NATS servers did not take everything, and \(node.text) is not removed yet: run the command again"
            }
        }
    }

    private let node: SeenNode
    private let log: any ReplicatedLog
    private let scheduler: any ClusterScheduler
    private let partitions: Partitions

    /// The node does not run.
    package init(
        _ node: SeenNode,
        _ partitions: Partitions,
        log: any ReplicatedLog,
        scheduler: any ClusterScheduler
    ) {
        self.node = node
        self.log = log
        self.scheduler = scheduler
        self.partitions = partitions
    }

    private var name: NodeName { node.record.node }

    /// Removes the node.
    /// - Returns: The number of devices that were released.
    /// - Throws: ``Failure``, or ``LogFailure``.
    package func run() async throws -> Int {
        var released = 0
        for partition in partitions.all { released += try await release(partition) }
        let record = LogMessage.tombstone(
            .node(name),
            expecting: node.sequence,
            timeToLive: ClusterLimits.removedRecordTimeToLive
        )
        switch await log.append(record, to: .meta) {
        case .stored: break
        case .moved: throw Failure.cameBack(name)
        case .refused, .notSent, .unknown: throw Failure.unavailable(name)
        }
        // Nobody reads them any more: what is left of them does no harm.
        for stream in LogStream.all(of: partitions) {
            _ = await log.append(LogMessage(removing: .barrier(name, in: stream)), to: stream)
        }
        _ = await log.append(LogMessage(removing: .selfTest(of: name)), to: .meta)
        return released
    }

    /// Releases the devices of a partition that the node has claimed.
    private func release(_ partition: Partition) async throws -> Int {
        let stream = LogStream.mailbox(partition)
        let found = ClaimsFound(of: node.record)
        let follower = LogFollower(
            stream,
            filters: [.claims(partition)],
            log: log,
            // Under the name of the node, so that the end of its barriers removes this one too.
            barriers: LogBarriers(log: log, node: name),
            scheduler: scheduler
        ) { found.add($0) }
        defer { follower.cancel() }
        try await follower.start()
        var released = 0
        for batch in Array(found.claims).chunks(ofCount: ClusterLimits.releasesInFlight) {
            released += try await release(batch, in: stream)
        }
        return released
    }

    private func release(
        _ claims: some Sequence<(key: LogSubject, value: UInt64)>,
        in stream: LogStream
    ) async throws -> Int {
        let outcomes = await withTaskGroup(of: AppendOutcome.self) { group in
            for (subject, sequence) in claims {
                group.addTask {
                    await log.append(
                        .tombstone(
                            subject,
                            expecting: sequence,
                            timeToLive: ClusterLimits.removedRecordTimeToLive
                        ),
                        to: stream
                    )
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var released = 0
        for outcome in outcomes {
            switch outcome {
            case .stored: released += 1
            // The device has connected to another node.
            case .moved: break
            case .refused, .notSent, .unknown: throw Failure.unavailable(name)
            }
        }
        return released
    }
}

/// The newest claims of a node that a follower has heard of.
private final class ClaimsFound: Sendable {
    private let record: NodeRecord
    private let state = Mutex<[LogSubject: UInt64]>([:])

    init(of record: NodeRecord) {
        self.record = record
    }

    var claims: [LogSubject: UInt64] { state.withLock { $0 } }

    func add(_ entries: [LogEntry]) {
        state.withLock { state in
            for entry in entries {
                let claim = entry.isTombstone ? nil : try? ClaimRecord(entry.payload)
                // A later process of the node holds what it has claimed.
                let isOwn = claim.map { $0.node == record.node && $0.incarnation <= record.incarnation } ?? false
                state[entry.subject] = isOwn ? entry.sequence : nil
            }
        }
    }
}

extension LogMessage {
    /// Removes the message of a subject, whatever it is.
    fileprivate init(removing subject: LogSubject) {
        self.init(subject, payload: ByteBuffer(), timeToLive: ClusterLimits.tombstoneTimeToLive)
    }
}
