import Foundation
package import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// Takes a data folder into a new cluster: its devices and notifications into the streams, its trust into the common one.
///
/// The folder then is that of the cluster's first node. Until the end no node starts; an interrupted import is repeated, and
/// begins again with empty streams.
package struct FolderImport {
    package let configuration: ServerConfiguration
    package let folder: DataFolder
    /// Whether the folder was just made from a backup: then that of a node may have no devices.
    package var isRestored = false

    /// Takes the folder, which no service uses.
    /// - Throws: An error that says what is wrong; until the end of the import, the folder stays as it was.
    package func run() async throws -> ClusterImport.Summary {
        try configuration.cluster.check(folder)
        let clock = configuration.clock.makeClock()
        return try await ClusterSession.visit(configuration.cluster, folder, clock: clock) { session in
            try await asOwner { try await take(session) }
        }
    }

    /// Checks that a cluster is empty, before there is a folder to take.
    package static func checkEmpty(_ configuration: ServerConfiguration) async throws {
        let (folder, clock) = (DataFolder(path: configuration.data), configuration.clock.makeClock())
        let isEmpty = try await ClusterSession.visit(configuration.cluster, folder, clock: clock) { session -> Bool in
            guard case .success? = await session.checks.answers(about: [LogStream.meta])[.meta] else { return true }
            do {
                let record = try await ClusterIdentity.read(session.changes)
                return record == nil || record?.importSource != nil
            } catch OtherTrust.otherKey {
                return false
            } catch {
                // The import says it.
                return true
            }
        }
        if !isEmpty { throw ImportProblem.notEmpty }
    }

    private func asOwner<Value>(_ body: () async throws -> Value) async throws -> Value {
        let end = try FolderOwner(of: folder.path)?.act()
        defer { end?() }
        return try await body()
    }

    private func take(_ session: ClusterSession) async throws -> ClusterImport.Summary {
        // A backup has none.
        try DataFolder.securePrivateFolder(folder.runPath)
        let lock = try await FolderLock.take(folder, or: "and repeat the import")
        defer { withExtendedLifetime(lock) {} }
        guard try folder.hasStore() else { throw nothingToTake }
        let summary: ClusterImport.Summary
        let store = try SQLiteStore(
            path: folder.databasePath,
            clock: configuration.clock.makeClock(),
            logger: Logger(label: "herald.store") { _ in SwiftLogNoOpLogHandler() },
            onFatal: { _ in }
        )
        do {
            guard try await store.hasContents() || isRestored || !isNode else { throw nothingToTake }
            summary = try await take(store, session)
        } catch {
            await store.close()
            throw error
        }
        await store.close()
        // The cluster has all of it; left here, it could be taken a second time.
        try StoreFiller.empty(folder.databasePath)
        return summary
    }

    private func take(_ store: SQLiteStore, _ opened: ClusterSession) async throws -> ClusterImport.Summary {
        guard let source = try JoiningFolder.rootFingerprint(at: folder.path) else {
            throw DataFolder.missing(folder.path)
        }
        // Without its keys, the cluster would make others, and no token would be valid.
        try TrustBackup.check(TrustLayout(data: folder.path))
        guard let partitions = Partitions(count: configuration.cluster.partitions) else {
            throw CommandError(.configuration, "cluster-partitions is out of range")
        }
        try ClusterStart.refuse(await opened.checks.servers(), opened.logger)
        let devices = try await store.loadRegistry().devices.map(\.1)
        let streams = ClusterStreams(opened.link.jetStream, replicas: configuration.cluster.replicas)
        let now = opened.clock.now()
        let mark = try await ClusterStart.onceReadable(opened.link, onStep: ClusterSession.tell) {
            try await streams.openForImport(of: source, partitions, without: devices, at: now, opened.changes) {
                try opened.key.keep(in: folder)
            }
        }
        let session = opened.of(mark)
        let fault = await EngineSelfTest(session.log, node: session.node).run()
        try ClusterStart.refuse(fault.map { [$0] } ?? [], session.logger)
        let summary = try await ClusterImport(
            from: store,
            generationFloor: store.generationFloor(),
            to: session.log,
            partitions,
            node: session.node,
            now: now
        ).run()
        try await session.enterTrust(of: folder, hostnames: configuration.hostnames)
        let wasNode = isNode
        var file = NodeFile()
        _ = await session.checks.look(LogStream.all(of: partitions), &file.seen)
        try file.write(folder)
        do {
            _ = try await ClusterIdentity.endImport(mark, session.changes)
        } catch {
            // The folder can still serve alone; after a lost answer it is that of a node.
            if !wasNode, (error as? RecordChangeFailure)?.isUnknown != true { unlink(folder.nodePath) }
            throw error
        }
        return summary
    }

    private var isNode: Bool { FileManager.default.fileExists(atPath: folder.nodePath) }

    package init(
        configuration: ServerConfiguration,
        folder: DataFolder,
        isRestored: Bool = false
    ) {
        self.configuration = configuration
        self.folder = folder
        self.isRestored = isRestored
    }

    private var nothingToTake: CommandError {
        CommandError(
            .folder,
            isNode
                ? "\(folder.path) is the folder of a cluster's node, and has no devices: there is nothing to import"
                : "no service has run on \(folder.path): there is nothing to import; a node that starts on it makes a new cluster"
        )
    }
}
