package import HeraldCluster
package import HeraldNATS

/// Decides from the states of a cluster's streams whether they survive the loss of a server.
package enum StreamCheck {
    package static func findings(_ streams: some Sequence<StreamInfo>) -> [ClusterFinding] {
        let leaderless = leaderless(streams)
        var behind: [String: Int] = [:]
        for stream in streams where stream.cluster?.leader?.isEmpty == false {
            for replica in stream.cluster?.replicas ?? [] where !replica.current || replica.offline == true {
                behind[replica.name, default: 0] += 1
            }
        }
        var findings: [ClusterFinding] = []
        if !leaderless.isEmpty {
            findings.append(
                ClusterFinding(
                    .warning,
                    "\(leaderless.count) streams have no leader",
                    remedy: "wait some seconds; if it stays so, start the NATS servers that are down"
                )
            )
        }
        for (name, count) in behind.sorted(by: { $0.key < $1.key }) {
            findings.append(
                ClusterFinding(
                    .warning,
                    "nats-server \(name) is behind with \(count) streams",
                    remedy: "start that nats-server, or wait until it has caught up"
                )
            )
        }
        return findings
    }

    /// The faults of streams whose states could not be read: one for each cause.
    /// - Parameters:
    ///   - failures: The streams, with the reasons.
    ///   - count: The number of all streams.
    /// - Returns: A finding for each cause.
    package static func findings(of failures: [LogStream: JetStreamError], among count: Int) -> [ClusterFinding] {
        let isAll = failures.count == count
        let causes = Dictionary(grouping: failures) { $0.value }
        return causes.sorted { "\($0.key)" < "\($1.key)" }.map { error, failures in
            let names = failures.map { $0.key.name }.sorted().joined(separator: ", ")
            switch error {
            case .refused(let refusal) where refusal.code == JetStreamRefusal.streamNotFound && isAll:
                return ClusterFinding(
                    .refusal,
                    "the NATS servers have no streams of Herald's",
                    remedy: "start a node, which makes them; if one has run before, its data are lost"
                )
            case .refused(let refusal) where refusal.code == JetStreamRefusal.streamNotFound:
                return ClusterFinding(
                    .refusal,
                    "streams are missing, and their data are lost (\(names))",
                    remedy: "restore the cluster from a backup"
                )
            default:
                return ClusterFinding(
                    .refusal,
                    "no answer about \(isAll ? "the streams" : names) (\(error))",
                    remedy: "wait some seconds; if it stays so, start the NATS servers that are down"
                )
            }
        }
    }

    /// The streams that nobody can write.
    static func leaderless(_ streams: some Sequence<StreamInfo>) -> [StreamInfo] {
        streams.filter { $0.cluster.map { $0.leader?.isEmpty != false } ?? false }
    }

    /// The servers that keep the streams, and that no monitoring address shows.
    static func unmonitored(_ streams: some Sequence<StreamInfo>, monitored: Set<String>) -> [ClusterFinding] {
        let servers = Set(
            streams.flatMap { stream in
                (stream.cluster?.replicas ?? []).map(\.name) + [stream.cluster?.leader].compactMap(\.self)
            }
        )
        return servers.subtracting(monitored).sorted().filter { !$0.isEmpty }.map { name in
            ClusterFinding(
                .warning,
                "nats-server \(name) is not checked: nothing shows whether it syncs every write",
                remedy: "add its monitoring address to cluster-monitor"
            )
        }
    }
}
