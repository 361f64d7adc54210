import NIOCore
import Synchronization

/// The nodes of the cluster, as their records in the log say.
package final class NodeList: LiveNodes {
    /// A node that this one knows of.
    package struct Known: Hashable, Sendable {
        /// The state of a node, as others see it.
        package enum State: Hashable, Sendable {
            case serving
            /// It has not renewed its record for this time, which is more than ``ClusterLimits/nodeSilence``.
            case silent(Duration)
            case left
        }

        package let record: NodeRecord
        package let state: State
    }

    private struct Seen: Sendable {
        let record: NodeRecord
        /// When this node heard of the record's last renewal.
        let heard: NIODeadline
    }

    private final class Contents: Sendable {
        let nodes = Mutex<[NodeName: Seen]>([:])
    }

    private let own: ClaimRecord
    private let scheduler: any ClusterScheduler
    private let contents = Contents()
    private let follower: LogFollower

    package init(
        own: ClaimRecord,
        log: any ReplicatedLog,
        barriers: LogBarriers,
        scheduler: any ClusterScheduler
    ) {
        self.own = own
        self.scheduler = scheduler
        follower = LogFollower(.meta, filters: [.nodes], log: log, barriers: barriers, scheduler: scheduler) {
            [contents] entries in
            let now = scheduler.now
            contents.nodes.withLock { nodes in
                for entry in entries {
                    if let record = try? NodeRecord(entry.payload) {
                        nodes[record.node] = Seen(record: record, heard: now)
                    } else if let name = NodeName(String(entry.subject.text.dropFirst(LogSubject.nodes.text.count - 1)))
                    {
                        // It was removed, or a newer version of Herald wrote it.
                        nodes[name] = nil
                    }
                }
            }
        }
    }

    /// Begins to follow the records, and waits until all present ones are known.
    /// - Throws: ``LogFailure`` if the log cannot be read or written.
    package func start() async throws { try await follower.start() }

    /// Ends the following.
    package func close() { follower.cancel() }

    /// All nodes that ever served and were not removed, by name.
    package var all: [Known] {
        let now = scheduler.now
        let isFresh = isFresh
        let nodes = contents.nodes.withLock { Array($0.values) }
        return nodes.map { Known(record: $0.record, state: state(of: $0, at: now, isFresh: isFresh)) }
            .sorted { $0.record.node.text < $1.record.node.text }
    }

    /// The age of what this node knows of the records.
    package var lag: Duration { follower.lag }

    package var others: Set<NodeName> {
        Set(all.compactMap { $0.state == .serving && $0.record.node != own.node ? $0.record.node : nil })
    }

    package func mayLive(_ holder: ClaimRecord) -> Bool {
        // A process that this node has not heard of has only just begun.
        guard let seen = contents.nodes.withLock({ $0[holder.node] }), holder.incarnation <= seen.record.incarnation
        else { return true }
        guard holder.incarnation == seen.record.incarnation else { return false }
        return state(of: seen, at: scheduler.now, isFresh: isFresh) == .serving
    }

    /// Whether a node that this one hears nothing of is silent: this one may be the one that is cut off.
    private var isFresh: Bool { lag <= ClusterLimits.staleClaims }

    private func state(of seen: Seen, at now: NIODeadline, isFresh: @autoclosure () -> Bool) -> Known.State {
        if seen.record.state == .left { return .left }
        let silence = Duration.nanoseconds(max(0, (now - seen.heard).nanoseconds))
        // Each post and each ring asks: the second question is for nodes that are silent.
        return silence > ClusterLimits.nodeSilence && isFresh() ? .silent(silence) : .serving
    }
}
