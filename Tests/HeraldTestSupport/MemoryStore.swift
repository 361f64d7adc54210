import Dispatch
package import HeraldMailbox
package import HeraldModel
package import Synchronization

/// A store in memory that forgets everything at its end, for tests: the contracts in their simplest form.
///
/// In manual mode nothing is durable until ``flush()``, which reports on the caller's thread, so that a test decides
/// what happens between a put and its report. Otherwise a queue of the store's own reports soon.
package final class MemoryStore: MailboxStore, JournalStore, RegistryStore, ChannelStore {
    /// What was ordered and is not durable.
    enum Order: Sendable {
        case put(Letter, StoreReason, PutTag?)
        case record(JournalEvent, Receipt?)
    }

    struct Held: Sendable {
        let notification: Notification
        let sequence: UInt64
    }

    struct Contents: Sendable {
        var orders: [Order] = []
        var sequence: UInt64 = 0
        var slots: [Slot: Held] = [:]
        var journal: [JournalEvent] = []
        var devices: [DeviceID: DeviceNumber] = [:]
        var apps: [App: AppNumber] = [:]
        var registrations: [Slot: Registration] = [:]
        var records: [DeviceNumber: DeviceRecord] = [:]
        var feedback: [FeedbackRecord] = []
        var channels: [BroadcastChannel] = []
        var broadcasts: [ChannelID: Broadcast] = [:]
        /// The generation with which a registration begins of which nothing is known.
        var generationFloor: UInt32 = 0
        var isAccepting = true
        var failsWrites = false
        var failsReads = false
    }

    private struct Weak {
        weak var reporter: (any MailboxStoreReporter)?
    }

    /// What a failing store throws.
    package struct WriteFailure: Error {}

    let contents = Mutex(Contents())
    private let reporter = Mutex(Weak())
    /// Whether broadcasts cannot be kept, while all else can.
    package let failsKeeping = Mutex(false)
    /// Where apps that are to be numbered, registered or removed wait for each other.
    package let meeting = Meeting()
    let clock: any WallClock
    private let isManual: Bool
    private let queue = DispatchQueue(label: "memory-store")
    /// What is to be read with the next flush, in manual mode.
    private let reads = Mutex<[@Sendable () -> Void]>([])

    package init(clock: any WallClock, isManual: Bool = false) {
        self.clock = clock
        self.isManual = isManual
    }

    // For tests.

    /// Whether notifications are accepted; true at first.
    package func setAccepting(_ isAccepting: Bool) {
        contents.withLock { $0.isAccepting = isAccepting }
    }

    /// Whether everything that is to be written fails from now on.
    package func setFailsWrites(_ fails: Bool) {
        contents.withLock { $0.failsWrites = fails }
    }

    /// Whether the mailbox cannot be read from now on.
    package func setFailsReads(_ fails: Bool) {
        contents.withLock { $0.failsReads = fails }
    }

    /// How many puts wait to become durable.
    package var pendingPuts: Int {
        contents.withLock { contents in
            contents.orders.count { if case .put = $0 { true } else { false } }
        }
    }

    /// The journal so far, oldest first, with what is not durable yet left out.
    package var journal: [JournalEvent] {
        contents.withLock { $0.journal }
    }

    /// Makes durable all that was ordered, or fails it, and reports on this thread; then reads what was to be read.
    package func flush() {
        let now = clock.now()
        let outcome = contents.withLock { $0.commit(at: now) }
        let reporter = reporter.withLock { $0.reporter }
        if !outcome.stored.isEmpty { reporter?.stored(outcome.stored) }
        if !outcome.failed.isEmpty { reporter?.failed(outcome.failed) }
        for (receipt, result) in outcome.receipts { receipt.settle(result) }
        let reads = reads.withLock { reads in
            defer { reads = [] }
            return reads
        }
        for read in reads { read() }
    }

    // The mailbox.

    package var isAccepting: Bool { contents.withLock { $0.isAccepting && !$0.failsWrites } }

    package var count: Int { contents.withLock { $0.slots.count } }

    package func report(to reporter: any MailboxStoreReporter) {
        self.reporter.withLock { $0.reporter = reporter }
    }

    package func put(_ letter: Letter, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        if isNew {
            let notification = letter.notification
            record([JournalEvent(.received, notification, at: notification.received)])
        }
        order(.put(letter, reason, tag))
    }

    package func remove(_ slot: Slot, sequence: UInt64, event: JournalEvent?) {
        contents.withLock { contents in
            if contents.slots[slot]?.sequence == sequence { contents.slots[slot] = nil }
            if let event { contents.orders.append(.record(event, nil)) }
        }
        flushSoon()
    }

    package func read(
        _ slots: [Slot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        let read: @Sendable () -> Void = { done(Result { try self.find(slots) }) }
        // Never before `read` returns: the caller holds a lock that `done` takes.
        if isManual { reads.withLock { $0.append(read) } } else { queue.async(execute: read) }
    }

    private func find(_ slots: [Slot]) throws -> [StoredNotification] {
        try contents.withLock { contents in
            guard !contents.failsReads else { throw WriteFailure() }
            return slots.compactMap { contents.slots[$0] }
                .map { StoredNotification(notification: $0.notification, sequence: $0.sequence) }
                .sorted { $0.sequence < $1.sequence }
        }
    }

    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int {
        try write { contents in
            let expired = contents.slots.values.filter { $0.notification.isExpired(at: moment) }.prefix(limit)
            for held in expired {
                contents.slots[held.notification.slot] = nil
                contents.journal.append(JournalEvent(.discardedExpiredFromStorage, held.notification, at: moment))
            }
            return expired.count
        }
    }

    // The journal.

    package func record(_ events: [JournalEvent]) {
        contents.withLock { contents in
            contents.orders += events.map { .record($0, nil) }
        }
        flushSoon()
    }

    package func record(_ event: JournalEvent, settling receipt: Receipt?) {
        order(.record(event, receipt))
    }

    package func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] {
        flushNow()
        return contents.withLock { contents in
            contents.journal.filter { event in
                switch query {
                case .notification(let id): event.id == id || event.uniqueID == id
                case .device(let device): event.slot.device == device
                case .app(let app): event.slot.app == app
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

    // How it is done.

    private func order(_ order: Order) {
        contents.withLock { $0.orders.append(order) }
        flushSoon()
    }

    private func flushSoon() {
        guard !isManual else { return }
        queue.async { self.flush() }
    }

    /// What is ordered before something comes before it; in manual mode the test says when.
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
        var failed: [Letter] = []
        var receipts: [(Receipt, ReceiptOutcome)] = []
    }

    /// Does what was ordered, in order.
    mutating func commit(at now: WallTime) -> Outcome {
        var outcome = Outcome()
        for order in orders {
            switch order {
            case .put(let letter, _, _) where failsWrites:
                outcome.failed.append(letter)
            case .put(let letter, let reason, let tag):
                outcome.stored.append(put(letter, reason, tag, at: now))
            case .record(let event, let receipt):
                if failsWrites {
                    if let receipt { outcome.receipts.append((receipt, .refused(.serviceUnavailable))) }
                } else {
                    journal.append(event)
                    if let receipt { outcome.receipts.append((receipt, .accepted)) }
                }
            }
        }
        orders = failsWrites ? orders.filter { if case .record(_, nil) = $0 { true } else { false } } : []
        return outcome
    }

    private mutating func put(
        _ letter: Letter,
        _ reason: StoreReason,
        _ tag: PutTag?,
        at now: WallTime
    ) -> StoredPut {
        let notification = letter.notification
        sequence += 1
        journal.append(JournalEvent(JournalState(stored: reason), notification, at: now))
        if let held = slots[notification.slot] {
            journal.append(JournalEvent(.replaced, held.notification, at: now, replacement: notification.id))
        }
        slots[notification.slot] = MemoryStore.Held(notification: notification, sequence: sequence)
        return StoredPut(letter: letter, sequence: sequence, tag: tag)
    }
}
