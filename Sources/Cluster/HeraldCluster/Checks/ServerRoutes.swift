import Foundation

/// The servers to which one NATS server has a route, from its monitoring port (`/routez`).
package struct ServerRoutes: Hashable, Sendable {
    package let name: String
    /// The names of the other servers.
    package let reached: Set<String>

    package init(name: String, reached: Set<String>) {
        self.name = name
        self.reached = reached
    }

    /// Reads the body of an answer.
    /// - Throws: If it is not one of a NATS server.
    package init(routez body: some Sequence<UInt8>) throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let answer = try decoder.decode(Answer.self, from: Data(body))
        self.init(name: answer.serverName, reached: Set((answer.routes ?? []).compactMap(\.remoteName)))
    }

    private struct Answer: Decodable {
        let serverName: String
        let routes: [Route]?

        struct Route: Decodable {
            let remoteName: String?
        }
    }
}

/// Decides which NATS servers do not reach each other.
///
/// NATS passes a message on once: two servers without a route between them exchange nothing, although both reach a third.
package enum RouteCheck {
    /// The pairs of servers without a route, as one of the two says, or both.
    package static func broken(_ servers: [ServerRoutes]) -> [(one: String, other: String)] {
        let sorted = servers.sorted { $0.name < $1.name }
        return sorted.indices.flatMap { index in
            sorted[(index + 1)...].compactMap { other in
                let one = sorted[index]
                let isWhole = one.reached.contains(other.name) && other.reached.contains(one.name)
                return isWhole ? nil : (one.name, other.name)
            }
        }
    }

    /// The faults of the routes between servers that answer.
    package static func findings(_ servers: [ServerRoutes]) -> [ClusterFinding] {
        let pairs = broken(servers)
        var counts: [String: Int] = [:]
        for pair in pairs {
            counts[pair.one, default: 0] += 1
            counts[pair.other, default: 0] += 1
        }
        // Of two servers, nobody can say which one is alone.
        let alone = Set(counts.filter { $0.value > 1 && $0.value == servers.count - 1 }.keys)
        var findings = alone.sorted().map { name in
            ClusterFinding(
                .warning,
                "nats-server \(name) is alone: no other NATS server reaches it, and Herald nodes leave it",
                remedy:
                    "open the route port (6222) of its machine to the others, and check `routes` in its configuration"
            )
        }
        for (one, other) in pairs where !alone.contains(one) && !alone.contains(other) {
            findings.append(
                ClusterFinding(
                    .warning,
                    "nats-server \(one) and \(other) do not reach each other, so Herald nodes at one do not hear those at the other",
                    remedy:
                        "open the route port (6222) between their machines, and check `routes` in both configurations"
                )
            )
        }
        return findings
    }
}
