package import HeraldNATS

/// Spreads the leaders of streams over the servers: each leads about as many as the others.
///
/// A leader does the most work of a stream, and NATS moves none by itself: after an upgrade one server may lead all.
package struct LeaderBalance {
    package struct Move: Hashable {
        package let stream: String
        package let from: String
        package let to: String
    }

    package let moves: [Move]
    /// The server that leads the most streams, and how many it leads of those that have a leader.
    package let most: (server: String, count: Int, of: Int)?

    /// A server that is behind takes over none of the streams.
    package init(_ streams: some Sequence<StreamInfo>) {
        let led = streams.compactMap { stream -> (name: String, leader: String, others: [String])? in
            guard let cluster = stream.cluster, let leader = cluster.leader, !leader.isEmpty else { return nil }
            let others = (cluster.replicas ?? []).filter { $0.current && $0.offline != true }.map(\.name)
            return (stream.configuration.name, leader, others.sorted())
        }
        .sorted { $0.name < $1.name }
        var counts: [String: Int] = [:]
        for stream in led { counts[stream.leader, default: 0] += 1 }
        let first = counts.max { ($0.value, $1.key) < ($1.value, $0.key) }
        most = first.map { (server: $0.key, count: $0.value, of: led.count) }
        var moves: [Move] = []
        for stream in led {
            // The server with the fewest; of equal ones the first by name.
            guard let to = stream.others.min(by: { counts[$0, default: 0] < counts[$1, default: 0] }),
                counts[stream.leader, default: 0] - counts[to, default: 0] > 1
            else { continue }
            counts[stream.leader, default: 0] -= 1
            counts[to, default: 0] += 1
            moves.append(Move(stream: stream.name, from: stream.leader, to: to))
        }
        self.moves = moves
    }

    /// A hint for operators, if one server leads two thirds of the streams or more.
    package var hint: String? {
        guard let most, !moves.isEmpty, most.count * 3 >= most.of * 2 else { return nil }
        return "\(most.server) leads \(most.count) of \(most.of) streams: `herald cluster balance` spreads them"
    }
}
