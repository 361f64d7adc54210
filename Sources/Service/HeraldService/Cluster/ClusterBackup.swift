import Foundation
import HeraldCluster
import HeraldModel
import HeraldStores
import HeraldTrust

/// The part of a backup that is the whole cluster's: devices, registrations, channels, notifications, and the trust of all
/// nodes.
package struct ClusterBackup {
    private let session: ClusterSession
    private let cluster: ClusterRecord

    /// Finds the cluster; the session stays the caller's.
    /// - Throws: If there is none, or if the folder is not of a node of it.
    package init(_ session: ClusterSession, of folder: DataFolder) async throws {
        cluster = try await session.cluster()
        self.session = session.of(cluster)
        let trust = try await ClusterTrust.read(session.changes)
        guard trust != nil else {
            throw CommandError(.refused, "the cluster has no trust yet: start its first node, and repeat the backup")
        }
        _ = try ClusterTrust.entry(
            to: trust,
            authority: try JoiningFolder.rootFingerprint(at: folder.path)
        )
    }

    /// Puts everything that the cluster keeps of its devices into a copy of the node's store.
    func fill(storeAt path: String, now: WallTime) async throws {
        let filler = try StoreFiller(path)
        let export = ClusterExport(
            log: session.log,
            barriers: session.barriers,
            partitions: cluster.partitions,
            scheduler: session.scheduler,
            logger: session.logger
        )
        do {
            try await export.run { try filler.add($0) }
        } catch let error as LogFailure {
            throw CommandError(
                .unreachable,
                "the NATS servers do not serve their streams (\(error)): herald cluster status"
            )
        }
        try filler.finish(at: now)
    }

    /// Adds to a copy of the node's trust what the node does not know.
    func takeTrust(into draft: DataFolder) async throws {
        try await session.enterTrust(of: draft, hostnames: [])
        // Parts of the running folder, not of a backup: after a restore, devices are told of a newer announcement.
        unlink("\(draft.trustPath)/lock")
        unlink(TrustLayout(data: draft.path).announcement)
    }
}
