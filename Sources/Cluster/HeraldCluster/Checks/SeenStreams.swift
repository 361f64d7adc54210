/// The newest state of each stream that a node has seen: how it notices that a cluster has lost what it had.
///
/// A stream whose last sequence goes back, or that was made anew, has lost acknowledged messages.
package struct SeenStreams: Codable, Hashable, Sendable {
    package struct Stream: Codable, Hashable, Sendable {
        /// The time of its creation, in the server's spelling.
        package var created: String
        package var lastSequence: UInt64

        package init(created: String, lastSequence: UInt64) {
            self.created = created
            self.lastSequence = lastSequence
        }
    }

    /// By name.
    package private(set) var streams: [String: Stream] = [:]

    package init() {}

    /// Notes the present state of a stream.
    /// - Returns: The loss that it shows; the older state stays then. Nil if all is well.
    package mutating func note(_ name: String, _ now: Stream) -> ClusterFinding? {
        if let seen = streams[name] {
            if now.created != seen.created {
                return Self.loss(name, "was made anew at \(now.created); this node knew the one of \(seen.created)")
            }
            if now.lastSequence < seen.lastSequence {
                return Self.loss(name, "ends at \(now.lastSequence); this node has seen \(seen.lastSequence)")
            }
        }
        streams[name] = now
        return nil
    }

    /// A stream that this node has seen is gone.
    package func missing(_ name: String) -> ClusterFinding? {
        streams[name].map { Self.loss(name, "is gone; this node has seen its sequence \($0.lastSequence)") }
    }

    private static func loss(_ name: String, _ text: String) -> ClusterFinding {
        ClusterFinding(
            .refusal,
            "the stream \(name) \(text): the NATS servers have lost what they had acknowledged, or are others",
            remedy:
                "check the setting cluster and the servers' store_dir; if the loss is real, start once with --cluster-accept-loss"
        )
    }
}
