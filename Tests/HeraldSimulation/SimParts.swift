import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore
import Synchronization

/// The generations of a device's apps, as the simulation keeps them in the log.
struct SimRegistration: Sendable {
    let device: DeviceNumber
    /// By app, of which the first has the number 1.
    var generations: [UInt32]

    init(device: DeviceNumber, generations: [UInt32]) {
        self.device = device
        self.generations = generations
    }

    init?(_ payload: ByteBuffer) {
        var payload = payload
        guard let device = payload.readInteger(as: UInt64.self) else { return nil }
        self.device = DeviceNumber(device)
        generations = []
        while let generation = payload.readInteger(as: UInt32.self) { generations.append(generation) }
    }

    var payload: ByteBuffer {
        var payload = ByteBuffer()
        payload.writeInteger(device.value)
        for generation in generations { payload.writeInteger(generation) }
        return payload
    }
}

/// The log as one node reaches it.
final class NodeLog: ReplicatedLog {
    private let world: SimWorld
    private let index: Int
    private let owner = Mutex<WeakNode>(WeakNode())

    private struct WeakNode: Sendable {
        weak var node: SimNode?
    }

    var node: SimNode? {
        get { owner.withLock { $0.node } }
        set { owner.withLock { $0.node = newValue } }
    }

    init(_ world: SimWorld, _ index: Int) {
        self.world = world
        self.index = index
    }

    func append(
        _ message: LogMessage,
        to stream: LogStream,
        _ done: @escaping @Sendable (AppendOutcome) -> Void
    ) {
        let back: @Sendable (AppendOutcome) -> Void = { [self] outcome in node?.enter { done(outcome) } }
        if world.cutOff.contains(index) {
            if world.chance.fails(oneIn: 2) { return world.time.run(after: .zero) { back(.notSent) } }
            return world.time.run(after: SimLog.appendTimeout) { back(.unknown) }
        }
        var message = message
        if world.claimsAreUnconditional, message.subject.claimedDevice != nil, !message.isTombstone {
            message.expectedSequence = nil
        }
        if world.mutation == .noGeneration, let (slot, generation) = message.subject.slot {
            message.subject = .slot(slot, generation: 0, world.partition)
            if !message.isTombstone {
                var payload = ByteBuffer(integer: generation)
                payload.writeImmutableBuffer(message.payload)
                message.payload = payload
            }
        }
        world.log.append(message, to: stream, back)
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        let back: @Sendable (Result<[LogEntry], LogFailure>) -> Void = { [self] result in node?.enter { done(result) } }
        if world.cutOff.contains(index) {
            return world.time.run(after: SimLog.readDeadline) { back(.failure(.unavailable)) }
        }
        var bound = bound
        if world.mutation == .boundIsTheClaim, let slot = subjects.lazy.compactMap(\.slot).first?.slot {
            bound = min(bound, node?.mailbox.fence(of: slot.device) ?? bound)
        }
        guard world.mutation == .noGeneration else { return world.log.read(subjects, in: stream, atLeast: bound, back) }
        let partition = world.partition
        let stripped = subjects.map { $0.slot.map { .slot($0.slot, generation: 0, partition) } ?? $0 }
        world.log.read(stripped, in: stream, atLeast: bound) { result in
            back(
                result.map { entries in
                    entries.map { entry in
                        guard let (slot, _) = entry.subject.slot, !entry.isTombstone else { return entry }
                        var payload = entry.payload
                        let generation = payload.readInteger(as: UInt32.self) ?? 0
                        let subject = LogSubject.slot(slot, generation: generation, partition)
                        return LogEntry(subject: subject, sequence: entry.sequence, payload: payload)
                    }
                }
            )
        }
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        let entering = EnteringReceiver(self, in: world, index: index, receive)
        return world.log.follow(filters, in: stream, after: sequence) { entering.received($0) }
    }
}

/// Hands what the log reports to a node, when it is not paused and reaches the log.
private final class EnteringReceiver: Sendable {
    private let log: NodeLog
    private let world: SimWorld
    private let index: Int
    private let receive: LogReceiver
    /// The entries that come while the node does not reach the log.
    private let held = Mutex<[LogEntry]>([])

    init(_ log: NodeLog, in world: SimWorld, index: Int, _ receive: @escaping LogReceiver) {
        self.log = log
        self.world = world
        self.index = index
        self.receive = receive
    }

    func received(_ entries: [LogEntry]) {
        let (isFirst, isHeld) = held.withLock { held in
            let isFirst = held.isEmpty
            guard !isFirst || world.cutOff.contains(index) else { return (false, false) }
            held += entries
            return (isFirst, true)
        }
        guard isHeld else { return log.node?.enter { [receive] in receive(entries) } ?? () }
        if isFirst { look() }
    }

    /// Hands on what is held once the node reaches the log again.
    private func look() {
        world.time.run(after: .milliseconds(20)) { [self] in
            guard let node = log.node, node.isAlive else { return }
            guard !world.cutOff.contains(index) else { return look() }
            let entries = held.withLock { held in
                defer { held = [] }
                return held
            }
            node.enter { [receive] in receive(entries) }
        }
    }
}

/// The virtual time of one node, which stops while it is paused, and ends when it dies.
struct NodeTime: ClusterScheduler {
    private let log: NodeLog
    private let time: SimTime

    init(_ log: NodeLog, _ time: SimTime) {
        self.log = log
        self.time = time
    }

    var now: NIODeadline { time.now }

    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        time.run(after: delay) { log.node?.enter(work) }
    }
}

/// A node's clock.
struct SkewedClock: WallClock {
    let world: SimWorld
    let skew: Duration

    func now() -> WallTime { world.wallTime + skew }
    func certainTime() -> WallTime { now() }
}

/// Passes reports on to the post office, and rings for what was stored.
final class NodeReporter: MailboxStoreReporter {
    private struct State {
        weak var node: SimNode?
        /// With the mutation, the sequences that the post office knows, and the true ones.
        var last: UInt64 = 1 << 40
        var truth: [UInt64: UInt64] = [:]
    }

    private let state = Mutex(State())

    var node: SimNode? {
        get { state.withLock { $0.node } }
        set { state.withLock { $0.node = newValue } }
    }

    /// The log's sequence of what the post office removes.
    func truth(_ sequence: UInt64) -> UInt64 { state.withLock { $0.truth[sequence] ?? sequence } }

    /// A stored notification, as the post office is told.
    func masked(_ stored: StoredNotification) -> StoredNotification {
        guard node?.world.mutation == .noSequenceGuard else { return stored }
        return StoredNotification(
            notification: stored.notification,
            generation: stored.generation,
            sequence: mask(stored.sequence)
        )
    }

    /// A sequence in the order of the reports instead of that of the log.
    private func mask(_ sequence: UInt64) -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.truth[state.last] = sequence
            return state.last
        }
    }

    func stored(_ puts: [StoredPut]) {
        guard let node else { return }
        for put in puts { node.world.note("\(node.name.text) has stored \(put.sequence)") }
        guard node.world.mutation == .noSequenceGuard else { return node.postOffice.stored(puts) }
        let others = puts.map { put in
            StoredPut(
                envelope: put.envelope,
                sequence: mask(put.sequence),
                tag: put.tag,
                isReplaced: put.isReplaced
            )
        }
        node.postOffice.stored(others)
    }

    func failed(_ envelopes: [Envelope]) { node?.postOffice.failed(envelopes) }

    func unknown(_ envelopes: [Envelope]) {
        guard let node else { return }
        if node.world.mutation == .unknownIsRefused {
            node.postOffice.failed(envelopes)
        } else {
            node.postOffice.unknown(envelopes)
        }
    }
}

/// The store of a node: its cluster mailbox, and a journal and a feedback list that nobody reads.
final class SimStore: MailboxStore, JournalStore, FeedbackStore {
    private struct Parts {
        weak var mailbox: ClusterMailbox?
        weak var node: SimNode?
    }

    private let parts = Mutex(Parts())

    var mailbox: ClusterMailbox? {
        get { parts.withLock { $0.mailbox } }
        set { parts.withLock { $0.mailbox = newValue } }
    }

    var node: SimNode? {
        get { parts.withLock { $0.node } }
        set { parts.withLock { $0.node = newValue } }
    }

    var isAccepting: Bool { mailbox?.isAccepting ?? false }
    var count: Int { 0 }

    func report(to reporter: any MailboxStoreReporter) {}

    func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        let world = node?.world
        if reason == .beforeDelivery { world?.kept.insert(envelope.notification.id.low) }
        let overtakes = world?.mutation == .overtakesForConnected
        mailbox?.put(envelope, reason: overtakes ? .deviceOffline : reason, tag: tag, isNew: isNew)
    }

    func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        mailbox?.remove(slot, sequence: node?.truth(sequence) ?? sequence, event: event)
    }

    func read(
        _ slots: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        if let node, let mailbox {
            node.world.note("\(node.name.text) reads \(slots) from \(mailbox.bound(of: slots[0].slot.device))")
        }
        mailbox?.read(slots) { [self] result in
            node?.world.note("read: \((try? result.get())?.map(\.sequence) ?? [])")
            done(result.map { node?.masked($0) ?? $0 })
        }
    }

    func removeExpired(at moment: WallTime, limit: Int) async throws -> Int { 0 }
    func record(_ events: [JournalEvent]) {}
    func record(_ event: JournalEvent, settling completion: Completion?) { completion?.settle(.accepted) }
    func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] { [] }
    func trim(before moment: WallTime, maximumBytes: Int) async throws {}

    func addFeedback(_ record: FeedbackRecord, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        done(.success(()))
    }

    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] { [] }
    func clearFeedback(_ records: [FeedbackRecord]) async throws {}
}

extension LogMessage {
    /// Whether it only removes what the subject held.
    fileprivate var isTombstone: Bool { payload.readableBytes == 0 }
}
