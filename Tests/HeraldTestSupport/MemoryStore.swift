import Dispatch
package import HeraldMailbox
package import HeraldModel
package import Synchronization

/// A store in memory, for tests: the simplest implementation of the contracts.
///
/// In manual mode nothing is durable until ``flush()``, which reports on the caller's thread. Otherwise a queue reports soon.
package final class MemoryStore: MailboxStore, JournalStore, RegistryStore, ChannelStore {
    /// A write that is not durable.
    enum Order: Sendable {
        case put(Envelope, StoreReason, PutTag?)
        case record(JournalEvent, Completion?)
    }

    struct Held: Sendable {
        let notification: Notification
        let generation: UInt32
        let sequence: UInt64
    }

    struct Contents: Sendable {
        var orders: [Order] = []
        var sequence: UInt64 = 0
        var slots: [Slot: Held] = [:]
        var journal: [JournalEvent] = []
        var devices: [DeviceID: DeviceNumber] = [:]
        var apps: [App: AppRecord] = [:]
        var lastApp: UInt32 = 0
        var registrations: [Slot: Registration] = [:]
        var records: [DeviceNumber: DeviceRecord] = [:]
        var feedback: [FeedbackRecord] = []
        var channels: [BroadcastChannel] = []
        var broadcasts: [ChannelID: Broadcast] = [:]
        /// The generation of a new registration.
        var generationFloor: UInt32 = 0
        var isAccepting = true
        var failsWrites = false
        var failsReads = false
    }

    private struct Weak {
        weak var reporter: (any MailboxStoreReporter)?
    }

    /// The error of a failing store.
    package struct WriteFailure: Error {}

    let contents = Mutex(Contents())
    private let reporter = Mutex(Weak())
    /// Whether only broadcasts cannot be stored.
    package let failsKeeping = Mutex(false)
    let channelReports = LocalChannelReports()
    let heldBroadcasts = Mutex<[@Sendable () -> Void]?>(nil)
    /// A meeting of concurrent calls that number, register or remove apps.
    package let meeting = Meeting()
    let clock: any WallClock
    private let isManual: Bool
    /// Another engine, which keeps the mailbox in place of this one.
    private let mailbox = Mutex<(any MailboxStore)?>(nil)
    private let queue = DispatchQueue(label: "memory-store")
    /// The pending reads, in manual mode.
    private let reads = Mutex<[@Sendable () -> Void]>([])

    package init(clock: any WallClock, isManual: Bool = false) {
        self.clock = clock
        self.isManual = isManual
    }

    // MARK: - For tests

    /// Leaves the mailbox to another engine, to test that one with the rest of a store.
    package func leave(mailbox: any MailboxStore) {
        self.mailbox.withLock { $0 = mailbox }
    }

    private var other: (any MailboxStore)? { mailbox.withLock { $0 } }

    /// Accepts notifications, or no longer; true at first.
    package func setAccepting(_ isAccepting: Bool) {
        contents.withLock { $0.isAccepting = isAccepting }
    }

    /// Makes every write fail, or no longer.
    package func setFailsWrites(_ fails: Bool) {
        contents.withLock { $0.failsWrites = fails }
    }

    /// Makes every read of the mailbox fail, or no longer.
    package func setFailsReads(_ fails: Bool) {
        contents.withLock { $0.failsReads = fails }
    }

    /// The number of puts that are not durable.
    package var pendingPuts: Int {
        contents.withLock { contents in
            contents.orders.count { if case .put = $0 { true } else { false } }
        }
    }

    /// The durable lines of the journal, oldest first.
    package var journal: [JournalEvent] {
        contents.withLock { $0.journal }
    }

    /// Commits or fails all pending writes, reports on this thread, then does the pending reads.
    package func flush() {
        let now = clock.now()
        let outcome = contents.withLock { $0.commit(at: now) }
        let reporter = reporter.withLock { $0.reporter }
        if !outcome.stored.isEmpty { reporter?.stored(outcome.stored) }
        if !outcome.failed.isEmpty { reporter?.failed(outcome.failed) }
        for (completion, result) in outcome.completions { completion.settle(result) }
        let reads = reads.withLock { reads in
            defer { reads = [] }
            return reads
        }
        for read in reads { read() }
    }

    // MARK: - Mailbox

    package var isAccepting: Bool {
        other?.isAccepting ?? contents.withLock { $0.isAccepting && !$0.failsWrites }
    }

    package var count: Int { other?.count ?? contents.withLock { $0.slots.count } }

    package func report(to reporter: any MailboxStoreReporter) {
        if let other { return other.report(to: reporter) }
        self.reporter.withLock { $0.reporter = reporter }
    }

    package func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        if let other { return other.put(envelope, reason: reason, tag: tag, isNew: isNew) }
        if isNew {
            let notification = envelope.notification
            record([JournalEvent(.received, notification, at: notification.received)])
        }
        order(.put(envelope, reason, tag))
    }

    package func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        if let other { return other.remove(slot, sequence: sequence, event: event) }
        let slot = slot.slot
        contents.withLock { contents in
            if contents.slots[slot]?.sequence == sequence { contents.slots[slot] = nil }
            if let event { contents.orders.append(.record(event, nil)) }
        }
        flushSoon()
    }

    package func read(
        _ registered: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        if let other { return other.read(registered, done) }
        let slots = registered.map(\.slot)
        let read: @Sendable () -> Void = { done(Result { try self.find(slots) }) }
        // Never before `read` returns: the caller holds a lock that `done` takes.
        if isManual { reads.withLock { $0.append(read) } } else { queue.async(execute: read) }
    }

    private func find(_ slots: [Slot]) throws -> [StoredNotification] {
        try contents.withLock { contents in
            guard !contents.failsReads else { throw WriteFailure() }
            return slots.compactMap { contents.slots[$0] }
                .map {
                    StoredNotification(notification: $0.notification, generation: $0.generation, sequence: $0.sequence)
                }
                .sorted { $0.sequence < $1.sequence }
        }
    }

    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int {
        if let other { return try await other.removeExpired(at: moment, limit: limit) }
        return try write { contents in
            let expired = contents.slots.values.filter { $0.notification.isExpired(at: moment) }.prefix(limit)
            for held in expired {
                contents.slots[held.notification.slot] = nil
                contents.journal.append(JournalEvent(.discardedExpiredFromStorage, held.notification, at: moment))
            }
            return expired.count
        }
    }

    // MARK: - Journal

    package func record(_ events: [JournalEvent]) {
        contents.withLock { contents in
            contents.orders += events.map { .record($0, nil) }
        }
        flushSoon()
    }

    package func record(_ event: JournalEvent, settling completion: Completion?) {
        order(.record(event, completion))
    }

    package func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] {
        flushNow()
        return contents.withLock { contents in
            contents.journal.filter { event in
                switch query {
                case .notification(let id): event.id == id || event.uniqueID == id
                case .device(let device): event.device == device
                case .app(let app): event.app == app
                case .topicWithoutApp(let topic): event.refusal?.topic == topic.name
                }
            }.suffix(limit)
        }
    }

    package func trim(before moment: WallTime, maximumBytes: Int) async throws {
        let bytesPerLine = 40
        try write { contents in
            contents.journal.removeAll { $0.time < moment }
            contents.journal = contents.journal.suffix(maximumBytes / bytesPerLine)
        }
    }

    private func order(_ order: Order) {
        contents.withLock { $0.orders.append(order) }
        flushSoon()
    }

    private func flushSoon() {
        guard !isManual else { return }
        queue.async { self.flush() }
    }

    /// Commits earlier writes first; in manual mode the test decides when.
    func flushNow() {
        guard !isManual else { return }
        queue.sync { flush() }
    }

    func write<Result: Sendable>(_ change: (inout Contents) throws -> Result) throws -> Result {
        try contents.withLock { contents in
            guard !contents.failsWrites else { throw WriteFailure() }
            return try change(&contents)
        }
    }
}

extension MemoryStore.Contents {
    struct Outcome: Sendable {
        var stored: [StoredPut] = []
        var failed: [Envelope] = []
        var completions: [(Completion, CompletionOutcome)] = []
    }

    /// Commits the pending writes in order.
    mutating func commit(at now: WallTime) -> Outcome {
        var outcome = Outcome()
        for order in orders {
            switch order {
            case .put(let envelope, _, _) where failsWrites:
                outcome.failed.append(envelope)
            case .put(let envelope, let reason, let tag):
                outcome.stored.append(put(envelope, reason, tag, at: now))
            case .record(let event, let completion):
                if failsWrites {
                    if let completion { outcome.completions.append((completion, .refused(.serviceUnavailable))) }
                } else {
                    journal.append(event)
                    if let completion { outcome.completions.append((completion, .accepted)) }
                }
            }
        }
        orders = failsWrites ? orders.filter { if case .record(_, nil) = $0 { true } else { false } } : []
        return outcome
    }

    private mutating func put(
        _ envelope: Envelope,
        _ reason: StoreReason,
        _ tag: PutTag?,
        at now: WallTime
    ) -> StoredPut {
        let notification = envelope.notification
        sequence += 1
        journal.append(JournalEvent(JournalState(stored: reason), notification, at: now))
        if let held = slots[notification.slot] {
            journal.append(JournalEvent(.replaced, held.notification, at: now, replacement: notification.id))
        }
        slots[notification.slot] = MemoryStore.Held(
            notification: notification,
            generation: envelope.generation,
            sequence: sequence
        )
        return StoredPut(envelope: envelope, sequence: sequence, tag: tag)
    }
}
