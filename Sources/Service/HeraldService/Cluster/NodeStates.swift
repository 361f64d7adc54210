import CoreMetrics
package import HeraldCluster
import Logging
import Synchronization

/// The nodes of the cluster by state, as operators see them.
package struct NodeStates: Sendable {
    private let live = NodeStates.gauge("live")
    private let silent = NodeStates.gauge("silent")
    private let left = NodeStates.gauge("left")

    private static func gauge(_ state: String) -> Gauge {
        Gauge(label: "herald_cluster_nodes", dimensions: [("state", state)])
    }

    /// Sets the gauges.
    func measure(_ nodes: [NodeList.Known]) {
        var (live, silent, left) = (0, 0, 0)
        for node in nodes {
            switch node.state {
            case .serving: live += 1
            case .silent: silent += 1
            case .left: left += 1
            }
        }
        self.live.record(live)
        self.silent.record(silent)
        self.left.record(left)
    }

    /// The fault of a node that neither lives nor has left.
    package static func warning(_ node: NodeList.Known) -> String? {
        guard case .silent(let silence) = node.state else { return nil }
        return finding(node.record.node.text, silent: silence.components.seconds).line
    }

    package static func finding(_ node: String, silent seconds: Int64) -> ClusterFinding {
        ClusterFinding(
            .refusal,
            "node \(node) has given no sign of life for \(seconds) s",
            remedy: "start it, or, if it is gone for good, remove it (herald cluster evict \(node))"
        )
    }
}

/// Logs once when a node falls silent, and when it is back or was removed.
final class NodeSilence: Sendable {
    private let silent = Mutex<Set<NodeName>>([])

    func look(at nodes: [NodeList.Known], _ logger: Logger) {
        let now = nodes.filter { NodeStates.warning($0) != nil }
        let names = Set(now.map(\.record.node))
        let before = silent.withLock { silent in
            defer { silent = names }
            return silent
        }
        for node in now where !before.contains(node.record.node) {
            if let text = NodeStates.warning(node) { logger.warning("\(text)") }
        }
        for name in before.subtracting(names).sorted(by: { $0.text < $1.text }) {
            let isKnown = nodes.contains { $0.record.node == name }
            logger.notice("node \(name.text) \(isKnown ? "is no longer silent" : "was removed from the cluster")")
        }
    }
}
