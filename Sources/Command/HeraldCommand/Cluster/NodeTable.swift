import HeraldCluster
import HeraldModel
import HeraldService

/// Decides from the records of the nodes, and from their answers, how each does: the nodes as `herald cluster` shows them.
struct NodeTable {
    /// A node as a command prints it.
    struct Entry: Encodable, Hashable {
        enum State: String, Encodable {
            case live, silent, left
        }

        let name: String
        let state: State
        let version: String
        let started: String
        /// Nil if it did not answer.
        let devicesConnected: Int?
        /// The time since its last sign of life, by the servers' clock.
        let lastSignSeconds: Int64
        /// The reasons why it does not serve, as it says itself.
        let problems: [String]
        let warnings: [String]
    }

    let entries: [Entry]

    /// `now` is the time of the servers.
    init(_ nodes: [SeenNode], at now: WallTime, _ reports: [NodeName: NodeReport]) {
        entries = nodes.map { node in
            let report = reports[node.record.node]
            // The clocks of two servers may differ.
            let silence = max(.zero, now - node.renewed)
            let state: Entry.State =
                if node.record.state == .left {
                    .left
                } else if report != nil || silence <= ClusterLimits.nodeSilence {
                    .live
                } else {
                    .silent
                }
            return Entry(
                name: node.record.node.text,
                state: state,
                version: node.record.version,
                started: node.record.started.rfc3339,
                devicesConnected: report?.devicesConnected,
                lastSignSeconds: report == nil ? silence.components.seconds : 0,
                problems: report?.problems ?? [],
                warnings: report?.warnings ?? []
            )
        }
    }

    /// The faults of the nodes, each with the name of its node.
    var findings: [ClusterFinding] {
        entries.flatMap { entry -> [ClusterFinding] in
            switch entry.state {
            case .left:
                [
                    ClusterFinding(
                        .refusal,
                        "node \(entry.name) was stopped",
                        remedy: "start it, or, if it is gone for good, remove it (herald cluster evict \(entry.name))"
                    )
                ]
            case .silent: [NodeStates.finding(entry.name, silent: entry.lastSignSeconds)]
            case .live where entry.devicesConnected == nil:
                [
                    ClusterFinding(
                        .refusal,
                        "node \(entry.name) does not answer; its last sign of life is \(entry.lastSignSeconds) s old",
                        remedy: "look again in \(ClusterLimits.nodeSilence.components.seconds) s"
                    )
                ]
            case .live:
                entry.problems.map { Self.finding(.refusal, entry, $0) }
                    + entry.warnings.map { Self.finding(.warning, entry, $0) }
            }
        }
    }

    private static func finding(_ severity: ClusterFinding.Severity, _ entry: Entry, _ text: String) -> ClusterFinding {
        ClusterFinding(severity, "node \(entry.name)", remedy: text)
    }

    /// The table that people read.
    static func lines(_ entries: [Entry]) -> [String] {
        var table = TextTable(["NODE", "STATE", "VERSION", "STARTED", "DEVICES", "LAST SIGN"])
        for entry in entries {
            table.add([
                entry.name, entry.state.rawValue, entry.version, entry.started,
                entry.devicesConnected.map(String.init) ?? "-", "\(entry.lastSignSeconds) s ago",
            ])
        }
        return table.lines
    }
}
