package import HeraldMailbox
package import HeraldModel
import Testing

/// All contracts of an engine.
package typealias AnyStore = any MailboxStore & JournalStore & RegistryStore & ChannelStore

/// An engine as the conformance suite drives it.
package protocol StoreFixture: AnyObject, Sendable {
    var store: AnyStore { get }
    /// Stops the engine and starts it again on its files; called only if the engine is durable.
    func restart() async throws
    /// Makes every write fail, or no longer.
    func setFailsWrites(_ fails: Bool)
    func close() async
}

/// How an engine keeps the journal beside its mailbox.
package enum EngineJournal: Sendable {
    /// A put and its lines are one transaction, and what a put replaced has a line.
    case transactional
    /// Lines follow the put, and what was replaced or expired has none.
    case separate
}

/// A kind of engine.
package struct StoreEngine: Sendable, CustomTestStringConvertible {
    package let name: String
    /// Whether its contents survive a restart.
    package let isDurable: Bool
    package let journal: EngineJournal
    /// Whether it removes expired notifications without being told, and counts only roughly what it stores.
    package let expiresByItself: Bool
    package let open: @Sendable (any WallClock) async throws -> any StoreFixture

    package init(
        name: String,
        isDurable: Bool,
        journal: EngineJournal = .transactional,
        expiresByItself: Bool = false,
        open: @escaping @Sendable (any WallClock) async throws -> any StoreFixture
    ) {
        self.name = name
        self.isDurable = isDurable
        self.journal = journal
        self.expiresByItself = expiresByItself
        self.open = open
    }

    package var testDescription: String { name }
}

/// A store with a witness, and shorthands for tests.
package struct StoreScene: Sendable {
    package let fixture: any StoreFixture
    let journal: EngineJournal
    let expiresByItself: Bool
    package let clock: ManualClock
    package let witness = StoreWitness()
    package let channels = ChannelWitness()

    package init(
        _ fixture: any StoreFixture,
        clock: ManualClock,
        journal: EngineJournal = .transactional,
        expiresByItself: Bool = false
    ) {
        self.fixture = fixture
        self.journal = journal
        self.expiresByItself = expiresByItself
        self.clock = clock
        fixture.store.report(to: witness)
    }

    package var store: AnyStore { fixture.store }
    package var now: WallTime { clock.now() }

    package func restart() async throws {
        try await fixture.restart()
        store.report(to: witness)
    }

    package static func slot(_ device: UInt64, _ app: UInt32 = 1) -> Slot {
        Slot(device: DeviceNumber(device), app: AppNumber(app))
    }

    /// A notification with the identifiers of a number.
    package func notification(
        _ number: UInt64,
        to slot: Slot,
        for duration: Duration = .seconds(3600),
        payload: String = "{\"aps\":{\"alert\":\"hello\"}}"
    ) -> Notification {
        Notification(
            id: NotificationID(high: 0xA, low: number),
            uniqueID: NotificationID(high: 0xB, low: number),
            slot: slot,
            received: now,
            storedUntil: now + duration,
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: Array(payload.utf8)
        )
    }

    /// Whether sequences rise in the order of the reports; what is replaced at once may share that of its successor.
    package static func sequencesRise(_ puts: [StoredPut]) -> Bool {
        zip(puts, puts.dropFirst()).allSatisfy {
            $0.sequence < $1.sequence || $0.isReplaced && $0.sequence == $1.sequence
        }
    }

    /// Puts a notification and waits for the report.
    @discardableResult
    package func put(_ notification: Notification, reason: StoreReason = .deviceOffline) async -> StoredPut? {
        let envelope = Envelope(notification)
        store.put(envelope, reason: reason, tag: nil)
        let heard = await witness.wait { heard in
            heard.stored.contains { $0.envelope === envelope } || heard.failed.contains { $0 === envelope }
        }
        return heard.stored.first { $0.envelope === envelope }
    }

    @discardableResult
    package func put(_ number: UInt64, to slot: Slot, for duration: Duration = .seconds(3600)) async -> StoredPut? {
        await put(notification(number, to: slot, for: duration))
    }

    /// Puts a token of a slot on the feedback list, now.
    package func addFeedback(_ slot: Slot, generation: UInt32) async throws {
        try await store.addFeedback(FeedbackRecord(slot: slot, generation: generation, time: now))
    }

    /// The numbers of the notifications in slots.
    package func waiting(_ slots: Slot...) async throws -> [UInt64] {
        try await store.waiting(in: slots).map(\.notification.id.low)
    }

    /// Whether the store holds this number of notifications, as far as the engine counts them.
    package func holds(_ count: Int) -> Bool { expiresByItself || store.count == count }

    /// The states that the engine records, of those that SQLite does.
    package func recorded(_ states: JournalState...) -> [JournalState] {
        journal == .separate ? states.filter { $0 != .replaced } : states
    }

    /// The states of a notification, oldest first.
    package func states(_ number: UInt64) async throws -> [JournalState] {
        try await lines(number).map(\.state)
    }

    package func lines(_ number: UInt64) async throws -> [JournalEvent] {
        try await store.lines(matching: .notification(NotificationID(high: 0xA, low: number)), limit: 100)
    }
}

extension FeedbackStore {
    /// ``addFeedback(_:_:)`` as an async call.
    package func addFeedback(_ record: FeedbackRecord) async throws {
        try await withCheckedThrowingContinuation { continuation in
            addFeedback(record) { continuation.resume(with: $0) }
        }
    }
}
