package import HeraldMailbox
package import HeraldModel
package import Logging

/// The dependencies that the parts of a node's store share.
package struct ClusterContext: Sendable {
    /// The claims of this process.
    let own: ClaimRecord
    let partitions: Partitions
    let log: any ReplicatedLog
    package let barriers: LogBarriers
    /// Writes and reads records.
    let changes: RecordChanges
    let journal: any JournalStore
    let clock: any WallClock
    let scheduler: any ClusterScheduler
    /// Gets damaged records.
    let logger: Logger

    package init(
        own: ClaimRecord,
        partitions: Partitions,
        log: any ReplicatedLog,
        journal: any JournalStore,
        clock: any WallClock,
        scheduler: any ClusterScheduler,
        logger: Logger
    ) {
        self.own = own
        self.partitions = partitions
        self.log = log
        barriers = LogBarriers(log: log, node: own.node)
        changes = RecordChanges(log: log, barriers: barriers)
        self.journal = journal
        self.clock = clock
        self.scheduler = scheduler
        self.logger = logger
    }

    /// A follower of a stream of records.
    func follower(
        of stream: LogStream,
        _ freshness: Freshness,
        apply: @escaping @Sendable ([LogEntry]) -> Void
    ) -> LogFollower {
        LogFollower(
            stream,
            log: log,
            barriers: barriers,
            scheduler: scheduler,
            freshness: freshness,
            hearsSetAside: true,
            apply: apply
        )
    }
}
