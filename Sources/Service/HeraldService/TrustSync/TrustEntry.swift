import Foundation
import HeraldCluster
import HeraldIdentity
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// Brings a node to the trust of its cluster: the first node gives it, further ones get it.
struct TrustEntry: Sendable {
    let configuration: ClusterConfiguration
    let folder: DataFolder
    /// The key of the cluster, under which the log is sealed.
    let key: NodeKey
    /// The names for the server certificate.
    let hostnames: [String]
    /// Where the service listens.
    var listening: [String] = []
    /// The addresses that devices are told; nil to announce nothing.
    var addresses: [ServiceEndpoint]?
    let clock: any WallClock
    let step: @Sendable (String) -> Void
    let logger: Logger

    /// The connection to the log.
    struct Connection: Sendable {
        let log: any ReplicatedLog
        let barriers: LogBarriers
        let changes: RecordChanges
        let scheduler: any ClusterScheduler
    }

    /// Opens the folder, with all that the cluster has; the caller closes what it gets.
    /// - Throws: ``OtherTrust``, or another error that says what to do.
    func enter(_ connection: Connection) async throws -> TrustSync {
        let authority = try JoiningFolder.rootFingerprint(at: folder.path)
        // A folder without trust has nothing that could replace the cluster's.
        let replaces = configuration.acceptsLoss && authority != nil
        let cluster = replaces ? nil : try await self.cluster(authority, connection.changes)
        let entry = try ClusterTrust.entry(to: cluster, authority: authority)
        let log = TrustLog(changes: connection.changes, barriers: connection.barriers)
        if entry == .member {
            step("reading the cluster's authorities and keys")
            let facts = try await log.read(JoiningFolder.firstFacts + [JoiningFolder.announcementKey])
            guard Set(facts.map(\.key)).isSuperset(of: JoiningFolder.firstFacts) else {
                throw CommandError(.refused, "the cluster has lost its authorities: restore it from a backup")
            }
            try await JoiningFolder.fill(at: folder.path, with: facts)
        }
        try key.keep(in: folder)
        let hasAuthorities = authority != nil && TrustFile.exists(TrustLayout(data: folder.path).authority)
        let trust = try await TrustFolder.create(
            at: folder.path,
            hostnames: hostnames,
            listening: listening,
            // The cluster's announcement comes from the log.
            addresses: !hasAuthorities && entry == .member ? nil : addresses,
            store: TrustDatabase.open,
            now: clock.now()
        )
        let sharing = try FolderSharing(trust)
        try await sharing.begin(anew: entry == .first)
        let sync = try await sync(sharing, with: log, connection)
        do {
            try await sync.start()
            guard entry == .first else { return sync }
            try await share(of: sync, in: log, connection.changes, replaces: replaces)
            return sync
        } catch {
            sync.close()
            throw error
        }
    }

    /// The record of the cluster's trust.
    ///
    /// A node that has the cluster's authority writes it again if somebody has overwritten it.
    private func cluster(_ authority: [UInt8]?, _ changes: RecordChanges) async throws -> ClusterTrust? {
        do {
            return try await ClusterTrust.read(changes)
        } catch RecordError.setAside(let subject) {
            guard let authority else { throw RecordError.setAside(subject) }
            let own = ClusterTrust(authority: authority)
            try await own.write(changes, replaces: true)
            return own
        }
    }

    private func sync(_ sharing: FolderSharing, with log: TrustLog, _ connection: Connection) async throws -> TrustSync
    {
        let inbox = TrustInbox()
        let kinds = SharedKey.Kind.allCases
        // A backup may have copied files before the ledger, so those are always read whole.
        let parts = [
            (kinds.filter { !$0.isOfLedger }, nil), (kinds.filter(\.isOfLedger), try await sharing.position()),
        ]
        let followers = parts.map { kinds, position in
            LogFollower(
                .trust,
                filters: kinds.map { .trust("\($0.rawValue).*") },
                after: position,
                log: connection.log,
                barriers: connection.barriers,
                scheduler: connection.scheduler,
                hearsSetAside: true
            ) { inbox.add($0) }
        }
        return TrustSync(
            sharing,
            log: log,
            followers: followers,
            inbox: inbox,
            scheduler: connection.scheduler,
            clock: clock,
            logger: logger
        )
    }

    /// Makes this node's trust the cluster's.
    private func share(
        of sync: TrustSync,
        in log: TrustLog,
        _ changes: RecordChanges,
        replaces: Bool
    ) async throws {
        step("storing authorities, keys and ledger in the cluster")
        // Of two first nodes, the one whose root comes first goes on.
        let root = try sync.folder.sharedRoot()
        guard try await log.share(root) == root else { throw OtherTrust.otherAuthority }
        try await sync.shareAll()
        guard let authority = try JoiningFolder.rootFingerprint(at: folder.path) else {
            throw OtherTrust.otherAuthority
        }
        try await ClusterTrust(authority: authority).write(changes, replaces: replaces)
        logger.notice(
            "this node's trust is the cluster's now; each further node starts with an empty data folder and a copy of this key",
            metadata: ["cluster-key": "\(TrustLayout(data: folder.path).clusterKey)"]
        )
    }
}
