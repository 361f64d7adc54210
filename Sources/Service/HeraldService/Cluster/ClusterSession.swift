import Foundation
package import HeraldCluster
import HeraldMailbox
package import HeraldModel
import HeraldNATS
import Logging

/// The connection of a command to a cluster, beside its nodes.
package struct ClusterSession: Sendable {
    /// The name of this machine's node, or of the command.
    package let node: NodeName
    package let configuration: ClusterConfiguration
    package let link: EngineLink
    /// The key of the cluster.
    package let key: NodeKey
    package let log: any ReplicatedLog
    let barriers: LogBarriers
    package let changes: RecordChanges
    package let scheduler: EventLoopScheduler
    package let clock: any WallClock
    let logger = Self.silent

    private static let silent = Logger(label: "herald") { _ in SwiftLogNoOpLogHandler() }

    /// Connects to the servers, does the work, and closes the connection.
    ///
    /// The session reads ``LogStream/meta`` alone until it is ``of(_:)`` a cluster. It has the name of this machine's node, if
    /// `name` is nil.
    /// - Throws: ``CommandError`` for a setting that cannot be used, or if no server answers; an error of the work.
    package static func visit<Value>(
        _ configuration: ClusterConfiguration,
        _ folder: DataFolder,
        as name: NodeName? = nil,
        clock: any WallClock,
        _ work: (ClusterSession) async throws -> Value
    ) async throws -> Value {
        let node = try name ?? configuration.nodeName()
        let key = try NodeKey(configuration, folder)
        let link = try EngineLink(configuration, logger: silent)
        func close() async { await link.connection.close() }
        let value = try await closingOnFailure(close) {
            try await link.waitUntilConnected()
            return try await work(ClusterSession(node, configuration, link: link, key: key, clock: clock))
        }
        await close()
        return value
    }

    private init(
        _ node: NodeName,
        _ configuration: ClusterConfiguration,
        link: EngineLink,
        key: NodeKey,
        incarnation: UInt32 = 0,
        clock: any WallClock
    ) {
        self.node = node
        self.configuration = configuration
        self.link = link
        self.key = key
        log = SealedLog(NATSLog(link.jetStream), key.seal, SetAside()).of(incarnation)
        barriers = LogBarriers(log: log, node: node)
        changes = RecordChanges(log: log, barriers: barriers)
        scheduler = EventLoopScheduler(link.connection.eventLoop)
        self.clock = clock
    }

    /// The session for all streams of a cluster.
    package func of(_ cluster: ClusterRecord) -> ClusterSession {
        ClusterSession(
            node,
            configuration,
            link: link,
            key: key,
            incarnation: cluster.incarnation,
            clock: clock
        )
    }

    /// Tells each step on standard error: some wait for the servers.
    static func tell(_ step: String) {
        FileHandle.standardError.write(Data((LogText.line("herald: \(step)") + "\n").utf8))
    }

    package var checks: EngineChecks {
        EngineChecks(configuration: configuration, jetStream: link.jetStream, clock: clock)
    }

    /// The record of the cluster.
    /// - Throws: ``CommandError/Code/refused`` if there is none, ``ImportProblem/underWay(since:)``.
    package func cluster() async throws -> ClusterRecord {
        let found = await checks.answers(about: [LogStream.meta])
        if case .failure(.refused(let refusal))? = found[.meta], refusal.code == JetStreamRefusal.streamNotFound {
            throw Self.noCluster
        }
        let record = try await ClusterStart.onceReadable(link, onStep: Self.tell) {
            try await key.opening { try await ClusterIdentity.read(changes) }
        }
        guard let record else { throw Self.noCluster }
        if record.importSource != nil { throw ImportProblem.underWay(since: record.created) }
        return record
    }

    private static let noCluster = CommandError(
        .refused,
        "the NATS servers of the setting cluster have no cluster of Herald's: check the setting, or start a node, which makes one"
    )

    /// Opens the trust of a folder, with all that the cluster has of it, or shares it with a new cluster.
    func enterTrust(of folder: DataFolder, hostnames: [String]) async throws {
        let entry = TrustEntry(
            configuration: configuration,
            folder: folder,
            key: key,
            hostnames: hostnames,
            clock: clock,
            step: { _ in },
            logger: logger
        )
        let connection = TrustEntry.Connection(log: log, barriers: barriers, changes: changes, scheduler: scheduler)
        try await ClusterStart.onceReadable(link, onStep: Self.tell) { try await entry.enter(connection) }.close()
    }
}
