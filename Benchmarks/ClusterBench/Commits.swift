import Crypto
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldNATS
import Logging
import NIOCore
import Synchronization

/// One way to commit notifications.
protocol Commits: Sendable {
    /// Calls `done` with whether it is stored.
    func commit(_ notification: Notification, _ done: @escaping @Sendable (Bool) -> Void)
}

/// Publishes the bytes that Herald stores, each under a subject of its own.
struct BareCommits: Commits {
    private let jetStream: JetStream

    init(_ jetStream: JetStream, replicas: Int) async throws {
        self.jetStream = jetStream
        var stream = StreamConfiguration(name: "BARE", subjects: ["bare.>"])
        stream.replicas = replicas
        stream.messagesPerSubject = 1
        stream.allowsTimeToLive = true
        _ = try await jetStream.createStream(stream)
    }

    func commit(_ notification: Notification, _ done: @escaping @Sendable (Bool) -> Void) {
        jetStream.publish(
            SlotRecord(notification).body,
            to: "bare.\(notification.slot.device.value)",
            timeToLive: .seconds(30 * 86_400),
            within: .seconds(30)
        ) { outcome in
            if case .stored = outcome { done(true) } else { done(false) }
        }
    }
}

/// Puts notifications into the mailbox of a node.
final class StoreCommits: Commits, MailboxStoreReporter {
    private let store: ClusterStore
    private let waiting = Mutex<[ObjectIdentifier: @Sendable (Bool) -> Void]>([:])

    init(_ jetStream: JetStream, replicas: Int) async throws {
        guard let node = NodeName("bench"), let partitions = Partitions(count: 1) else { fatalError("a constant") }
        let first = SealedLog(
            NATSLog(jetStream),
            RecordSeal(SymmetricKey(data: Array(repeating: UInt8(7), count: 32))),
            SetAside()
        )
        let clock = ServiceClock()
        let changes = RecordChanges(log: first, barriers: LogBarriers(log: first, node: node))
        let cluster = try await ClusterStreams(jetStream, replicas: replicas)
            .open(partitions, at: clock.now(), changes)
        store = ClusterStore(
            log: first.of(cluster.incarnation),
            cluster: cluster,
            own: ClaimRecord(node: node, incarnation: 1),
            journal: NoJournal(),
            clock: clock,
            scheduler: EventLoopScheduler(jetStream.connection.eventLoop),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        try await store.load()
        store.report(to: self)
    }

    func commit(_ notification: Notification, _ done: @escaping @Sendable (Bool) -> Void) {
        let envelope = Envelope(notification, generation: 1)
        waiting.withLock { $0[ObjectIdentifier(envelope)] = done }
        store.put(envelope, reason: .deviceOffline, tag: nil)
    }

    func stored(_ puts: [StoredPut]) {
        for put in puts { finish(put.envelope, true) }
    }

    func failed(_ envelopes: [Envelope]) {
        for envelope in envelopes { finish(envelope, false) }
    }

    func unknown(_ envelopes: [Envelope]) {
        for envelope in envelopes { finish(envelope, false) }
    }

    private func finish(_ envelope: Envelope, _ isStored: Bool) {
        waiting.withLock { $0.removeValue(forKey: ObjectIdentifier(envelope)) }?(isStored)
    }
}

/// A journal that keeps nothing.
private struct NoJournal: JournalStore {
    func record(_ events: [JournalEvent]) {}
    func record(_ event: JournalEvent, settling completion: Completion?) { completion?.settle(.accepted) }
    func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] { [] }
    func trim(before moment: WallTime, maximumBytes: Int) async throws {}
}

/// Keeps commits in flight: each that ends begins the next one.
final class CommitPump: Sendable {
    private struct State {
        var next = 0
        var open = 0
        var failures = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let commits: any Commits
    private let notifications: [Notification]
    private let window: Int
    private let state = Mutex(State())

    init(_ commits: any Commits, notifications: [Notification], window: Int) {
        self.commits = commits
        self.notifications = notifications
        self.window = window
    }

    var failures: Int { state.withLock { $0.failures } }

    func run() async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = continuation }
            for _ in 0..<window { beginNext() }
        }
    }

    private func beginNext() {
        let number: Int? = state.withLock { state in
            guard state.next < notifications.count else { return nil }
            defer {
                state.next += 1
                state.open += 1
            }
            return state.next
        }
        guard let number else { return }
        commits.commit(notifications[number]) { [self] isStored in
            let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.open -= 1
                if !isStored { state.failures += 1 }
                return state.next == notifications.count && state.open == 0 ? state.waiter.take() : nil
            }
            waiter?.resume()
            beginNext()
        }
    }
}
