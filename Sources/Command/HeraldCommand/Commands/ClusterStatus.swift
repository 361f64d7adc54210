import ArgumentParser
import HeraldService

/// `herald cluster status`: the state of a cluster's nodes, NATS servers and streams.
struct ClusterStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the nodes, the NATS servers and the streams of a cluster, and their faults.",
        discussion: """
            Takes the settings of the cluster from the options, from the environment, and from the file of --config. \
            Exits with 1 if a node or a NATS server does not serve, or if something is wrong that could lose notifications.

            Example:
              herald cluster status --config /etc/herald/herald.yaml
            """
    )

    @OptionGroup var access: ClusterAccess

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let report = try await access.visit { await ClusterReport($0) }
        if json { try Terminal.sayJSON(report) } else { report.lines.forEach(Terminal.say) }
        if report.isFaulty { throw ExitCode.failure }
    }
}
