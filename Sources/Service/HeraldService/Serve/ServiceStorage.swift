import HeraldCluster
import HeraldMailbox
import HeraldStores
import Logging

/// The store of a service, for all its parts.
typealias ServiceStore = MailboxStore & JournalStore & RegistryStore & ChannelStore

/// The stores of a service, and its place in a cluster.
struct ServiceStorage: Sendable {
    /// The database in the data folder.
    ///
    /// In a cluster it keeps the journal and the clock alone.
    let store: SQLiteStore
    /// The place in a cluster; nil for a service that stands alone.
    let cluster: ClusterNode?
    /// The store of notifications, registrations, sessions and channels: the cluster, or the database.
    let engine: any ServiceStore
    /// Yields when the store has failed permanently.
    let failure: AsyncStream<StoreError>

    /// Opens the database, sets the clock by it, and joins the cluster if the settings name one.
    static func open(
        _ configuration: ServerConfiguration,
        folder: DataFolder,
        clock: ServiceClock,
        process: ServiceProcess
    ) async throws -> ServiceStorage {
        try configuration.cluster.check(folder)
        let (failures, failure) = AsyncStream.makeStream(of: StoreError.self, bufferingPolicy: .bufferingOldest(1))
        let store = try SQLiteStore(
            path: folder.databasePath,
            clock: clock,
            logger: process.logger,
            onStep: { process.manager.status($0.rawValue) },
            onFatal: { failure.yield($0) }
        )
        return try await closingOnFailure(store.close) {
            try folder.recordStore()
            clock.resume(try await store.clockRecord())
            let cluster =
                configuration.cluster.servers.isEmpty
                ? nil
                : try await ClusterNode.join(
                    configuration.cluster,
                    folder: folder,
                    journal: store,
                    hostnames: configuration.hostnames,
                    listening: configuration.listening,
                    addresses: configuration.announcedAddresses,
                    clock: clock,
                    manager: process.manager,
                    logger: process.logger
                )
            return ServiceStorage(store: store, cluster: cluster, engine: cluster?.store ?? store, failure: failures)
        }
    }

    /// Closes the stores of a service that does not come to serve.
    func close() async {
        await cluster?.close()
        await store.close()
    }
}

/// Does work, and closes what was opened before if the work fails.
func closingOnFailure<Value>(
    _ close: () async -> Void,
    _ work: () async throws -> Value
) async throws -> Value {
    do {
        return try await work()
    } catch {
        await close()
        throw error
    }
}
