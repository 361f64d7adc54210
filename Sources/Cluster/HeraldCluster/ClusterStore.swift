package import HeraldMailbox
package import HeraldModel
package import Logging

/// All stores of a cluster's node: mailbox, registry and channels in the log, and the journal on the node's own disk.
package final class ClusterStore: Sendable {
    package let mailbox: ClusterMailbox
    package let directory: ClusterDirectory
    package let rings: NodeRings
    let registry: ClusterRegistry
    let channels: ClusterChannels
    let context: ClusterContext
    /// The trust that the nodes share; nil for a node that shares none.
    let trust: (any SharedState)?

    /// Makes the stores on a log whose streams exist, as ``ClusterStreams/open(_:mayBeNew:known:at:_:keepKey:)`` leaves
    /// them.
    ///
    /// Without `messages`, the node hears no other. The logger gets damaged records.
    package init(
        configuration: ClusterMailboxConfiguration = ClusterMailboxConfiguration(),
        log: any ReplicatedLog,
        cluster: ClusterRecord,
        own: ClaimRecord,
        messages: (any NodeMessages)? = nil,
        nodes: any LiveNodes = NodeAlone(),
        trust: (any SharedState)? = nil,
        journal: any JournalStore,
        clock: any WallClock,
        scheduler: any ClusterScheduler,
        logger: Logger
    ) {
        let context = ClusterContext(
            own: own,
            partitions: cluster.partitions,
            log: log,
            journal: journal,
            clock: clock,
            scheduler: scheduler,
            logger: logger
        )
        self.context = context
        self.trust = trust
        mailbox = ClusterMailbox(context, configuration: configuration)
        let registry = ClusterRegistry(context, incarnation: cluster.incarnation)
        self.registry = registry
        rings = NodeRings(
            context,
            messages: messages ?? NodeExchange(node: own.node, scheduler: scheduler) { _, _, _ in },
            mailbox: mailbox,
            nodes: nodes
        ) { device, done in
            registry.catchUp(registry.streams(of: .registrations(of: device)), done)
        }
        directory = ClusterDirectory(context, mailbox: mailbox, rings: rings)
        channels = ClusterChannels(context)
    }

    /// Loads registry and channels, and opens the mailbox, before any other call; after a failure it may be called again.
    /// - Throws: ``LogFailure`` if the log cannot be read or written, ``RecordError`` for a record of another version.
    package func load() async throws {
        try await mailbox.start()
        try await rings.start()
        try await registry.start()
        try await channels.start()
    }

    /// Ends the following of the log.
    package func close() {
        rings.stop()
        registry.close()
        channels.close()
    }

    /// The age of what this node knows of each stream that it follows.
    package var lags: [(stream: LogStream, lag: Duration)] {
        (registry.activeFollowers + channels.activeFollowers + rings.followers).map { ($0.stream, $0.lag) }
    }

    /// - Throws: ``RecordError`` if another node has written a record of another version.
    package func check() throws {
        try registry.check()
        try channels.check()
    }

    /// Removes the notification of an ended registration, with a line in the context.journal.
    ///
    /// Returns when it is removed, or after ``ClusterLimits/barrierAttempt``. A failure is not an error: it is never delivered, and
    /// expires in the log.
    func discard(_ slot: RegisteredSlot, as state: JournalState, at moment: WallTime) async {
        for stored in await waiting(in: slot) { remove(stored, as: state, at: moment) }
    }

    /// The notification that waits for the present registration of a slot.
    ///
    /// None after a failure: one for an app that the user has disabled is discarded when it is read.
    func waiting(_ slot: Slot) async -> [StoredNotification] {
        guard let registration = registry.registration(slot) else { return [] }
        return await waiting(in: RegisteredSlot(slot, generation: registration.generation))
    }

    func remove(_ stored: StoredNotification, as state: JournalState, at moment: WallTime) {
        let slot = RegisteredSlot(stored.notification.slot, generation: stored.generation)
        let event = JournalEvent(state, stored.notification, at: moment)
        mailbox.remove(slot, sequence: stored.sequence, event: event)
    }

    private func waiting(in slot: RegisteredSlot) async -> [StoredNotification] {
        let stream = LogStream.mailbox(context.partitions.partition(of: slot.slot.device))
        return await withCheckedContinuation { continuation in
            let end = context.scheduler.bounded(within: ClusterLimits.barrierAttempt, failing: LogFailure.unavailable) {
                (result: Result<[StoredNotification], any Error>) in
                continuation.resume(returning: (try? result.get()) ?? [])
            }
            // Behind a barrier, the read has what other nodes stored too.
            context.barriers.pass(stream) { [mailbox] result in
                guard case .success(let barrier) = result else { return end(.success([])) }
                mailbox.saw(barrier, of: slot.slot.device)
                mailbox.read([slot]) { end($0) }
            }
        }
    }
}
