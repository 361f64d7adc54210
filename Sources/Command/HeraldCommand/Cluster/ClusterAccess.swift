import ArgumentParser
import HeraldCluster
import HeraldMailbox
import HeraldNATS
import HeraldService

/// The options with which a command reaches a cluster without a node.
struct ClusterAccess: ParsableArguments {
    @Option(help: ArgumentHelp("A YAML file with the settings of `herald serve`.", valueName: "file"))
    var config: String?

    @OptionGroup(title: ClusterSettings.title) var options: SettingOptions<ClusterSettings>

    /// The settings of the service, which name a cluster.
    /// - Throws: ``CommandError/Code/configuration``.
    func settings() throws -> ServerConfiguration {
        let settings = try ServerConfiguration(Settings(commandLine: options.typed, file: config))
        guard !settings.cluster.servers.isEmpty else {
            throw CommandError(
                .configuration,
                "no cluster is configured: name its NATS servers with --cluster, or its settings with --config"
            )
        }
        return settings
    }

    /// Connects to the servers, does the work, and closes the connection.
    /// - Throws: ``CommandError``, or an error of the work.
    func visit<Value>(_ work: (ClusterSession) async throws -> Value) async throws -> Value {
        let settings = try settings()
        let folder = DataFolder(path: settings.data)
        // Nodes answer by name, and this machine's may be that of a node, or none that a node can have.
        let name = NodeName("command-\(String(UInt64.random(in: 0 ... .max), radix: 36))")
        return try await ClusterSession.visit(settings.cluster, folder, as: name, clock: ServiceClock(), work)
    }
}

extension ClusterSession {
    /// The error of a command that lacks the key.
    private static let lacksKey = CommandError(
        .configuration,
        "the nodes' records are sealed, and this command lacks the cluster key: name a copy of trust/cluster.key of a node's data "
            + "folder with --cluster-key, or the node's settings with --config, as a user who may read the key"
    )

    /// The records of the cluster and its nodes.
    /// - Throws: ``CommandError`` if the servers do not have them, or do not answer.
    func records() async throws -> ClusterRecords {
        do {
            return try await ClusterRecords(link.jetStream, seal: key.seal)
        } catch let error as OtherTrust {
            throw key.isNew ? Self.lacksKey : CommandError(.refused, error.description)
        } catch JetStreamError.refused(let refusal) where refusal.code == JetStreamRefusal.streamNotFound {
            throw CommandError(
                .refused,
                "the NATS servers have no streams of Herald's: start a node, which makes them"
            )
        } catch {
            throw CommandError(
                .unreachable,
                "the NATS servers do not show the nodes (\(error)): wait some seconds, or see herald cluster status"
            )
        }
    }

    /// The nodes, as their records and their answers show them.
    func nodes(_ records: ClusterRecords) async throws -> NodeTable {
        // One that has left has nobody who answers.
        let asked = records.nodes.filter { $0.record.state != .left }.map(\.record.node)
        let reports = try await reports(of: Set(asked), records.incarnation)
        return NodeTable(records.nodes, at: records.now ?? ServiceClock().now(), reports)
    }

    private func reports(of nodes: Set<NodeName>, _ incarnation: UInt32) async throws -> [NodeName: NodeReport] {
        let messages = try key.messages(of: node, in: incarnation, link, SetAside())
        defer { messages.close() }
        return await NodeQuestions(exchange: messages.exchange).reports(of: nodes)
    }
}
