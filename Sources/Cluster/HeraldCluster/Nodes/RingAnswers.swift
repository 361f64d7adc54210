import NIOCore

/// How far the other nodes have answered rings: tells a ring that was lost from a node that is behind.
///
/// Messages from one node to another keep their order, and a node answers rings in the order in which they come. So a ring
/// without an answer was lost if one that was sent later has been answered, or if the node has fallen silent. A repetition is
/// sent later than all that was sent before it, so a ring is known here by the number of its last sending.
struct RingAnswers {
    private struct Progress {
        /// The number of the latest sending that the node has answered.
        var ring: UInt64
        /// The moment of its last answer.
        var moment: NIODeadline
    }

    private var progress: [NodeName: Progress] = [:]

    /// A node has answered a ring, whose last sending has this number; nil if the ring is over, or was sent only once
    /// because too many waited.
    mutating func add(_ node: NodeName, ring: UInt64?, at now: NIODeadline) {
        progress[node, default: Progress(ring: 0, moment: now)].moment = now
        if let ring, let known = progress[node]?.ring, known < ring { progress[node]?.ring = ring }
    }

    /// Whether a node answers earlier rings than this one, and will come to it.
    func isBehind(_ node: NodeName, ring: UInt64, at now: NIODeadline) -> Bool {
        guard let known = progress[node] else { return false }
        return known.ring < ring && now - known.moment < TimeAmount(ClusterLimits.ringPauses[0])
    }
}
