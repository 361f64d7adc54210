import ArgumentParser
import HeraldCluster
import HeraldService

/// `herald cluster nodes`: the nodes of a cluster.
struct ClusterNodes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes",
        abstract: "Show the Herald nodes of a cluster.",
        discussion: """
            A node is live, silent (it has given no sign of life for \(ClusterLimits.nodeSilence.components.seconds) s), or \
            has left (it was stopped). Takes the settings of the cluster like `herald cluster status`.

            Example:
              herald cluster nodes --config /etc/herald/herald.yaml
            """
    )

    @OptionGroup var access: ClusterAccess

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let table = try await access.visit { try await $0.nodes(try await $0.records()) }
        if json { return try Terminal.sayJSON(table.entries) }
        guard !table.entries.isEmpty else { return Terminal.say("no node has ever served this cluster") }
        NodeTable.lines(table.entries).forEach(Terminal.say)
    }
}
