import HeraldCluster
import HeraldNATS

/// Decides from the state of a stream whether it survives the loss of a server.
enum StreamCheck {
    static func findings(_ stream: StreamInfo) -> [ClusterFinding] {
        let name = stream.configuration.name
        guard let cluster = stream.cluster else { return [] }
        guard cluster.leader?.isEmpty == false else {
            return [
                ClusterFinding(
                    .warning,
                    "the stream \(name) has no leader",
                    remedy: "wait some seconds; if it stays so, start the NATS servers that are down"
                )
            ]
        }
        return (cluster.replicas ?? []).filter { !$0.current || $0.offline == true }.map { replica in
            ClusterFinding(
                .warning,
                "the replica of \(name) on \(replica.name) is \(replica.offline == true ? "offline" : "behind")",
                remedy: "start that nats-server, or wait until it has caught up"
            )
        }
    }
}
