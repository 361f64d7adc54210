import HeraldCluster
import HeraldNATS

/// Decides from the states of a cluster's streams whether they survive the loss of a server.
enum StreamCheck {
    static func findings(_ streams: some Sequence<StreamInfo>) -> [ClusterFinding] {
        var leaderless: [String] = []
        var behind: [String: Int] = [:]
        for stream in streams {
            guard let cluster = stream.cluster else { continue }
            if cluster.leader?.isEmpty != false { leaderless.append(stream.configuration.name) }
            for replica in cluster.replicas ?? [] where !replica.current || replica.offline == true {
                behind[replica.name, default: 0] += 1
            }
        }
        let waiting = leaderless.map { name in
            ClusterFinding(
                .warning,
                "the stream \(name) has no leader",
                remedy: "wait some seconds; if it stays so, start the NATS servers that are down"
            )
        }
        let late = behind.sorted { $0.key < $1.key }.map { name, count in
            ClusterFinding(
                .warning,
                "nats-server \(name) is behind with \(count) streams",
                remedy: "start that nats-server, or wait until it has caught up"
            )
        }
        return waiting + late
    }
}
