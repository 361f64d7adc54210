import ArgumentParser
import HeraldCluster
import HeraldNATS
import HeraldService

/// `herald cluster evict`: removes a node that is gone for good.
struct ClusterEvict: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evict",
        abstract: "Remove a node that is gone for good.",
        discussion: """
            Removes the record of the node, and releases the devices that were connected to it. Notifications stay, and \
            reach the devices at other nodes. The journal of the node is not asked for any more. Refuses a node that is \
            live. A node that starts again under the name is a new one.

            Example:
              herald cluster evict herald3 --config /etc/herald/herald.yaml
            """
    )

    @Argument(help: "The name of the node, as `herald cluster nodes` shows it.")
    var node: String

    @OptionGroup var access: ClusterAccess

    func run() async throws {
        let released = try await access.visit { session in
            let records = try await session.records()
            let found = try Self.check(node, try await session.nodes(records).entries)
            guard let seen = records.nodes.first(where: { $0.record.node.text == found.name }),
                let partitions = records.partitions
            else { return 0 }
            let eviction = NodeEviction(
                seen,
                partitions,
                log: SealedLog(NATSLog(session.link.jetStream), session.key.seal, SetAside()).of(records.incarnation),
                scheduler: session.scheduler
            )
            do {
                return try await eviction.run()
            } catch let error as NodeEviction.Failure {
                throw CommandError(.refused, error.description)
            }
        }
        Terminal.say("node \(node) is removed; devices released: \(released)")
    }

    /// Finds the node to remove.
    /// - Throws: ``CommandError/Code/refused`` if there is no such node, or if it is live.
    static func check(_ name: String, _ nodes: [NodeTable.Entry]) throws -> NodeTable.Entry {
        guard let entry = nodes.first(where: { $0.name == name }) else {
            let names = nodes.map { "\($0.name) (\($0.state.rawValue))" }.joined(separator: ", ")
            throw CommandError(
                .refused,
                "the cluster has no node \(LogText.escaped(name, limit: 64)): its nodes are \(names.isEmpty ? "none" : names)"
            )
        }
        guard entry.state != .live else {
            throw CommandError(
                .refused,
                "node \(name) is live (last sign of life \(entry.lastSignSeconds) s ago): stop it first; one that was killed "
                    + "counts as live for \(ClusterLimits.nodeSilence.components.seconds) s"
            )
        }
        return entry
    }
}
