package import HeraldMailbox
package import HeraldModel
import Logging
import NIOCore
import Synchronization

/// The mailbox of a cluster's node: the newest notification of each slot is a message of the replicated log.
///
/// A notification is stored when a majority of the log's servers has it on disk. A put whose answer was lost is looked for
/// behind a barrier: it is there, or its outcome is unknown. Nothing rests on clocks, and any node may store for any device.
package final class ClusterMailbox: Sendable {
    private final class Share: Sendable {
        let partition: Partition
        let barrier: LogSubject
        let state = Mutex(MailboxPartition())
        let inFlight = Atomic<Int>(0)
        let isClosed = Atomic<Bool>(false)

        init(_ partition: Partition, _ node: NodeName) {
            self.partition = partition
            barrier = .barrier(node, in: .mailbox(partition))
        }
    }

    private struct Reports {
        weak var reporter: (any MailboxStoreReporter)?
        var stored: [(put: StoredPut, reason: StoreReason, newer: NotificationID?)] = []
        var failed: [Envelope] = []
        var unknown: [Envelope] = []
        var isScheduled = false
    }

    private let configuration: ClusterMailboxConfiguration
    private let context: ClusterContext
    private let shares: [Share]
    private let reports = Mutex(Reports())
    private let stored = Atomic<Int>(0)
    private let isStarted = Atomic<Bool>(false)

    package init(
        _ context: ClusterContext,
        configuration: ClusterMailboxConfiguration = ClusterMailboxConfiguration()
    ) {
        self.configuration = configuration
        self.context = context
        shares = context.partitions.all.map { Share($0, context.own.node) }
    }

    /// Makes a barrier in every partition: what was stored before this call is read from now on.
    /// - Throws: ``LogFailure`` if a partition cannot be written.
    package func start() async throws {
        try await withCheckedThrowingContinuation { continuation in
            start { continuation.resume(with: $0) }
        }
    }

    /// ``start()`` with a callback, once, from any thread.
    package func start(_ done: @escaping @Sendable (Result<Void, LogFailure>) -> Void) {
        start(shares[...], done)
    }

    private func start(_ left: ArraySlice<Share>, _ done: @escaping @Sendable (Result<Void, LogFailure>) -> Void) {
        guard let share = left.first else {
            isStarted.store(true, ordering: .releasing)
            return done(.success(()))
        }
        context.barriers.pass(.mailbox(share.partition)) { [self] result in
            switch result {
            case .failure(let failure): done(.failure(failure))
            case .success(let sequence):
                share.state.withLock { $0.saw(sequence) }
                start(left.dropFirst(), done)
            }
        }
    }

    /// The sequence up to which a read for a device contains everything, if it begins now.
    package func bound(of device: DeviceNumber) -> UInt64 { share(of: device).state.withLock { $0.bound } }

    /// The fence of a device's newest connection here; nil if there is none.
    package func fence(of device: DeviceNumber) -> UInt64? { at(device) { $0.held.fence(of: device) } }

    /// The decisions about connections of a device.
    func at<Value: Sendable>(_ device: DeviceNumber, _ decide: (inout MailboxPartition) -> Value) -> Value {
        share(of: device).state.withLock { decide(&$0) }
    }

    /// Notes a sequence of another record of the device's partition, such as a claim: later reads contain it.
    package func saw(_ sequence: UInt64, of device: DeviceNumber) {
        share(of: device).state.withLock { $0.saw(sequence) }
    }

    /// Sets ``count``, which the log's servers know.
    package func setCount(_ count: Int) { stored.store(count, ordering: .relaxed) }

    private func share(of device: DeviceNumber) -> Share { shares[context.partitions.partition(of: device).index] }

    // MARK: - Writing

    private func perform(_ orders: [SlotWrites.Order], _ slot: RegisteredSlot, _ share: Share) {
        for order in orders {
            switch order {
            case .append(let write): append(write, slot, share)
            case .reportStored(let write, let sequence): reportStored(write, sequence, share)
            case .reportFailed(let write):
                reportFailed(write, share)
                close(share)
            case .reportUnknown(let write): reportUnknown(write, share)
            case .settle(let write): settle(write, slot, share)
            case .pause:
                context.scheduler.run(after: configuration.retry) { [self] in
                    let now = context.scheduler.now
                    perform(share.state.withLock { $0.pauseOver(slot, at: now) }, slot, share)
                }
            }
        }
    }

    private func append(_ write: SlotWrites.Write, _ slot: RegisteredSlot, _ share: Share) {
        let notification = write.envelope.notification
        let rest = (notification.storedUntil ?? notification.received) - context.clock.now()
        let message = LogMessage(
            .slot(slot.slot, generation: slot.generation, share.partition),
            payload: SlotRecord(notification).body,
            timeToLive: max(rest, .zero) + ClusterLimits.timeToLiveSlack,
            answerTime: max(
                .nanoseconds((write.deadline - context.scheduler.now).nanoseconds),
                ClusterLimits.barrierAttempt
            )
        )
        context.log.append(message, to: .mailbox(share.partition)) { [self] outcome in
            let now = context.scheduler.now
            perform(share.state.withLock { $0.appended(slot, outcome, at: now) }, slot, share)
        }
    }

    /// Finds out what became of a put whose answer was lost; past its deadline and one attempt more, it remains unknown.
    ///
    /// The partition takes nothing more until it answers.
    private func settle(_ write: SlotWrites.Write, _ slot: RegisteredSlot, _ share: Share) {
        close(share)
        let now = context.scheduler.now
        let rest = max(write.deadline, now) - now + TimeAmount(ClusterLimits.barrierAttempt)
        context.scheduler.run(after: .nanoseconds(rest.nanoseconds)) { [self] in settled(write, at: nil, slot, share) }
        look(for: write, slot, share)
    }

    /// Looks for a put behind a barrier: a read at the barrier's sequence finds it, if it happened before.
    private func look(for write: SlotWrites.Write, _ slot: RegisteredSlot, _ share: Share) {
        let put = write.envelope.notification.uniqueID
        guard share.state.withLock({ $0.isSettling(slot, put) }) else { return }
        context.barriers.pass(.mailbox(share.partition)) { [self] result in
            guard case .success(let bound) = result else {
                return context.scheduler.run(after: configuration.retry) { [self] in look(for: write, slot, share) }
            }
            let subject = LogSubject.slot(slot.slot, generation: slot.generation, share.partition)
            context.log.read([share.barrier, subject], in: .mailbox(share.partition), atLeast: bound) { [self] result in
                let entry = (try? result.get())?.first { $0.subject == subject }
                let found = entry.flatMap { notification($0) }?.notification
                settled(write, at: found?.uniqueID == put ? entry?.sequence : nil, slot, share)
            }
        }
    }

    private func settled(_ write: SlotWrites.Write, at sequence: UInt64?, _ slot: RegisteredSlot, _ share: Share) {
        let put = write.envelope.notification.uniqueID
        let now = context.scheduler.now
        perform(share.state.withLock { $0.settled(slot, put, at: sequence, now: now) }, slot, share)
    }

    /// Takes nothing more for a partition until a barrier can be made there.
    private func close(_ share: Share) {
        guard share.state.withLock({ $0.close() }) else { return }
        share.isClosed.store(true, ordering: .relaxed)
        reopen(share)
    }

    private func reopen(_ share: Share) {
        context.barriers.pass(.mailbox(share.partition)) { [self] result in
            guard case .success(let sequence) = result else {
                return context.scheduler.run(after: configuration.retry) { [self] in reopen(share) }
            }
            let removals = share.state.withLock { state in
                state.saw(sequence)
                return state.reopen()
            }
            share.isClosed.store(false, ordering: .relaxed)
            for removal in removals { appendTombstone(removal, share) }
        }
    }

    // MARK: - Reports

    private func reportStored(_ write: SlotWrites.Write, _ sequence: UInt64, _ share: Share) {
        report(1 + write.overtaken.count, share) { reports in
            let chain = write.overtaken + [write]
            for (index, each) in chain.enumerated() {
                let newer = index + 1 < chain.count ? chain[index + 1].envelope.notification.id : nil
                let put = StoredPut(
                    envelope: each.envelope,
                    sequence: sequence,
                    tag: each.tag,
                    isReplaced: newer != nil
                )
                reports.stored.append((put, each.reason, newer))
            }
        }
    }

    /// Fails the writes that this one overtook: they were never sent.
    private func reportUnknown(_ write: SlotWrites.Write, _ share: Share) {
        report(1 + write.overtaken.count, share) { reports in
            reports.failed += write.overtaken.map(\.envelope)
            reports.unknown.append(write.envelope)
        }
    }

    private func reportFailed(_ write: SlotWrites.Write, _ share: Share) {
        report(1, share) { $0.failed.append(write.envelope) }
    }

    /// Reports on the scheduler's thread: the caller may hold a lock that the reporter takes.
    private func report(_ count: Int, _ share: Share, _ add: (inout Reports) -> Void) {
        share.inFlight.wrappingSubtract(count, ordering: .relaxed)
        let isFirst = reports.withLock { reports in
            add(&reports)
            defer { reports.isScheduled = true }
            return !reports.isScheduled
        }
        if isFirst { context.scheduler.run(after: .zero) { [self] in flushReports() } }
    }

    private func flushReports() {
        let batch = reports.withLock { reports in
            defer {
                reports.stored = []
                reports.failed = []
                reports.unknown = []
                reports.isScheduled = false
            }
            return reports
        }
        let now = context.clock.now()
        var lines: [JournalEvent] = []
        for (put, reason, newer) in batch.stored {
            let notification = put.envelope.notification
            lines.append(JournalEvent(JournalState(stored: reason), notification, at: now))
            if let newer { lines.append(JournalEvent(.replaced, notification, at: now, replacement: newer)) }
        }
        if !lines.isEmpty { context.journal.record(lines) }
        if !batch.stored.isEmpty { batch.reporter?.stored(batch.stored.map(\.put)) }
        if !batch.failed.isEmpty { batch.reporter?.failed(batch.failed) }
        if !batch.unknown.isEmpty { batch.reporter?.unknown(batch.unknown) }
    }
}

// MARK: - MailboxStore

extension ClusterMailbox: MailboxStore {
    package var isAccepting: Bool {
        isStarted.load(ordering: .acquiring) && shares.allSatisfy(isAccepting)
    }

    package func isAccepting(for device: DeviceNumber) -> Bool {
        isStarted.load(ordering: .acquiring) && isAccepting(share(of: device))
    }

    private func isAccepting(_ share: Share) -> Bool { !isFull(share) && !share.isClosed.load(ordering: .relaxed) }

    private func isFull(_ share: Share) -> Bool {
        share.inFlight.load(ordering: .relaxed) >= configuration.putsInFlight
    }

    package var isOverloaded: Bool {
        shares.contains(where: isFull) && !shares.contains { $0.isClosed.load(ordering: .relaxed) }
    }

    package var count: Int { stored.load(ordering: .relaxed) }

    package func report(to reporter: any MailboxStoreReporter) {
        reports.withLock { $0.reporter = reporter }
    }

    package func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        let notification = envelope.notification
        if isNew { context.journal.record([JournalEvent(.received, notification, at: notification.received)]) }
        let share = share(of: notification.slot.device)
        share.inFlight.wrappingAdd(1, ordering: .relaxed)
        let slot = RegisteredSlot(notification.slot, generation: envelope.generation)
        // Its provider may have waited already until this node knew what the others have stored.
        let age = isNew ? min(max(context.clock.now() - notification.received, .zero), configuration.deadline) : .zero
        let write = SlotWrites.Write(
            envelope: envelope,
            reason: reason,
            tag: tag,
            deadline: context.scheduler.now + TimeAmount(configuration.deadline - age)
        )
        perform(share.state.withLock { $0.put(write, to: slot) }, slot, share)
    }

    package func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        let share = share(of: slot.slot.device)
        share.state.withLock { $0.remove(sequence) }
        if let event { context.journal.record([event]) }
        appendTombstone(MailboxPartition.Removal(slot: slot, sequence: sequence), share)
    }

    private func appendTombstone(_ removal: MailboxPartition.Removal, _ share: Share) {
        let slot = removal.slot
        let subject = LogSubject.slot(slot.slot, generation: slot.generation, share.partition)
        var message = LogMessage.tombstone(subject, expecting: removal.sequence)
        message.isSealed = false
        context.log.append(message, to: .mailbox(share.partition)) { [self] outcome in
            guard share.state.withLock({ $0.removed(removal, outcome) }) else { return }
            context.scheduler.run(after: ClusterLimits.removalRetry) { [self] in
                for removal in share.state.withLock({ $0.retryRemovals() }) { appendTombstone(removal, share) }
            }
        }
    }

    package func read(
        _ slots: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        let parts = Dictionary(grouping: slots) { context.partitions.partition(of: $0.slot.device).index }
            .flatMap { index, slots in
                stride(from: 0, to: slots.count, by: ClusterLimits.slotsPerRead).map { start in
                    (shares[index], slots[start..<min(start + ClusterLimits.slotsPerRead, slots.count)])
                }
            }
        // Never before this returns: the caller holds a lock that `done` takes.
        let gathering = GatheredResults<StoredNotification>(parts.count) { [context] result in
            context.scheduler.run(after: .zero) { done(result.map { $0.sorted { $0.sequence < $1.sequence } }) }
        }
        for (share, slots) in parts { read(slots, share) { gathering.add($0) } }
    }

    private func read(
        _ slots: ArraySlice<RegisteredSlot>,
        _ share: Share,
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        let devices = Set(slots.map(\.slot.device))
        let subjects = slots.map { LogSubject.slot($0.slot, generation: $0.generation, share.partition) }
        let bound = share.state.withLock { $0.beginRead(slots.lazy.map(\.slot), of: devices) }
        context.log.read([share.barrier] + subjects, in: .mailbox(share.partition), atLeast: bound) { [self] result in
            let entries = share.state.withLock { $0.endRead(devices, (try? result.get()) ?? []) }
            switch result {
            case .failure(let failure): done(.failure(failure))
            case .success: done(.success(entries.compactMap(notification)))
            }
        }
    }

    private func notification(_ entry: LogEntry) -> StoredNotification? {
        guard !entry.isTombstone, !entry.isSetAside, let (slot, generation) = entry.subject.slot else { return nil }
        do {
            let notification = try SlotRecord(entry.payload).notification(to: slot)
            return StoredNotification(notification: notification, generation: generation, sequence: entry.sequence)
        } catch {
            context.logger.error(
                "a stored notification cannot be read",
                metadata: ["subject": "\(entry.subject)", "error": "\(error)"]
            )
            return nil
        }
    }

    /// The log expires by itself; ``Notification/isExpired(at:)`` decides before.
    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int { 0 }
}
