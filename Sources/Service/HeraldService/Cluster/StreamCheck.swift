package import HeraldCluster
package import HeraldNATS

/// Decides from the states of a cluster's streams whether they survive the loss of a server.
package enum StreamCheck {
    /// A finding for each server with a fault, and for streams without a leader.
    ///
    /// `running` are the servers that are known to run. A stream says for a while of one that has stopped that it is
    /// behind.
    package static func findings(
        _ streams: some Sequence<StreamInfo>,
        running: Set<String> = []
    ) -> [ClusterFinding] {
        let leaderless = leaderless(streams)
        var (absent, behind): ([String: Int], [String: Int]) = ([:], [:])
        for stream in streams where stream.cluster?.leader?.isEmpty == false {
            for replica in stream.cluster?.replicas ?? [] {
                if replica.offline == true {
                    absent[replica.name, default: 0] += 1
                } else if !replica.current {
                    behind[replica.name, default: 0] += 1
                }
            }
        }
        var findings: [ClusterFinding] = []
        if !leaderless.isEmpty {
            findings.append(
                ClusterFinding(
                    .warning,
                    "\(Self.streams(leaderless.count)) without a leader",
                    remedy: "wait some seconds; if it stays so, start the NATS servers that are down"
                )
            )
        }
        for (name, count) in absent.sorted(by: { $0.key < $1.key }) {
            let words =
                "nats-server \(name), which has \(Self.streams(count)), does not run, or is cut off from the others"
            findings.append(ClusterFinding(.warning, words, remedy: "start it, or mend its network"))
        }
        for (name, count) in behind.sorted(by: { $0.key < $1.key }) {
            let words = "nats-server \(name) is behind with \(Self.streams(count))"
            let wait = "wait until it has caught up"
            let remedy = running.contains(name) ? wait : "start it if it does not run, or else \(wait)"
            findings.append(ClusterFinding(.warning, words, remedy: remedy))
        }
        return findings
    }

    private static func streams(_ count: Int) -> String { count == 1 ? "1 stream" : "\(count) streams" }

    /// The faults of streams whose states could not be read, of `count` streams in all: one for each cause.
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
