import CoreMetrics
package import HeraldModel
import HeraldProvider
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// Sends what is in the queue, and writes down what became of it.
///
/// Claim, send, write: a claim is durable before anything of it is sent, and holds the identifier under which it is
/// sent. Whoever takes a row over whose owner is gone knows by that identifier what to ask for. Claims and outcomes are
/// written many at a time, and nothing is locked while something is sent.
package final class Relay: Service {
    let configuration: RelayConfiguration
    let store: any RelayStore
    let clock: any WallClock
    let logger: Logger
    let metrics = RelayMetrics()
    let health: RelayHealth
    /// Who this relay is, in the column `owner`.
    let owner: String
    let makeRoute: @Sendable (RelayApp) throws -> Route
    private let signal = WakeSignal()
    private let box: OutcomeBox
    private let table = Mutex(RouteTable())
    let brake: Mutex<DeathBrake>
    private let isStopping = Mutex(false)
    /// The rows that are claimed and whose outcome is not in the box yet.
    private let hand = Mutex<Set<Int64>>([])
    /// Routes that left the configuration and may still be sending.
    private let retired = Mutex<[Route]>([])

    /// - Parameters:
    ///   - configuration: How it works.
    ///   - apps: Who sends what, and where.
    ///   - store: The queue.
    ///   - owner: Who it is among those that share the queue.
    ///   - clock: The time.
    ///   - logger: What happens.
    ///   - readToken: Reads the token in a file, each time that it is asked.
    /// - Throws: If a credential cannot be used.
    package convenience init(
        configuration: RelayConfiguration,
        apps: [RelayApp],
        store: any RelayStore,
        owner: String,
        clock: any WallClock,
        logger: Logger,
        readToken: @escaping @Sendable (String) throws -> String
    ) throws {
        let policy = configuration.rules.retry
        let timeout = configuration.timeout
        try self.init(configuration: configuration, store: store, owner: owner, clock: clock, logger: logger) { app in
            Route(
                app,
                sender: try app.sender(timeout: timeout),
                inquiry: app.inquiry(readToken),
                policy: policy
            )
        }
        try replace(apps)
    }

    init(
        configuration: RelayConfiguration,
        store: any RelayStore,
        owner: String,
        clock: any WallClock,
        logger: Logger,
        makeRoute: @escaping @Sendable (RelayApp) throws -> Route
    ) throws {
        self.configuration = configuration
        self.store = store
        self.owner = owner
        self.clock = clock
        self.logger = logger
        self.makeRoute = makeRoute
        box = OutcomeBox(signal)
        brake = Mutex(DeathBrake(configuration.brake))
        health = RelayHealth(limit: configuration.unhealthyAge, clock: clock)
    }

    /// Takes other apps: those that have not changed keep their connections.
    /// - Throws: If a credential cannot be used; then all stays as it was.
    package func replace(_ apps: [RelayApp]) throws {
        let old = table.withLock { $0 }
        let (new, gone) = try RouteTable.make(apps, from: old, makeRoute)
        table.withLock { $0 = new }
        retired.withLock { $0 += gone }
        signal.ring()
    }

    var routes: RouteTable { table.withLock { $0 } }

    /// Runs until it is told to stop; then sends nothing more, and writes what is in hand.
    package func run() async throws {
        // Brakes first, before an answer comes; if the database does not work now, nothing can be marked either.
        do { try await look() } catch { health.lookFailure("\(error)") }
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { [self] in
                    for await _ in store.changes() { signal.ring() }
                }
                group.addTask { [self] in await measure() }
                group.addTask { [self] in await readFeedbacks() }
                group.addTask { [self] in await watchJournals() }
                await pump()
                group.cancelAll()
            }
        } onGracefulShutdown: { [self] in
            isStopping.withLock { $0 = true }
            signal.ring()
        }
        for route in routes.routes + retired.withLock({ $0 }) { await route.sender.shutdown() }
        await store.close()
    }

    private var inHand: Int { hand.withLock { $0.count } }

    /// The least room for which rows are claimed.
    ///
    /// Not for a handful: a claim costs a commit, whatever its size.
    private var leastRoom: Int { max(1, min(configuration.batch, configuration.window / 2)) }

    /// How long outcomes gather before they are written.
    private static let gathering = Duration.milliseconds(5)

    /// How long rows are left alone that are due and locked.
    private static let lockPause = Duration.milliseconds(100)

    private func pump() async {
        var state = PumpState(lease: configuration.lease)
        await withDiscardingTaskGroup { group in
            while true {
                let isStopping = isStopping.withLock { $0 } || Task.isCancelled
                // An outcome is in the box before its row leaves the hand: whatever there was is written below.
                let isIdle = inHand == 0
                // While many are under way, more outcomes come at once: a commit costs the same for all of them.
                if inHand > leastRoom, !isStopping { try? await Task.sleep(for: Relay.gathering) }
                await flush(&state)
                if isStopping, isIdle, state.unwritten.isEmpty { return }
                // Past the time for stopping, what cannot be written is left to whoever starts next.
                if Task.isCancelled { return }
                await extend(&state)
                var isBusy = false
                if !isStopping, state.unwritten.isEmpty { isBusy = await claim(&state, &group) }
                if isBusy { continue }
                await signal.wait(atMost: pause(state))
            }
        }
    }

    /// Claims as many rows as there is room for.
    /// - Returns: Whether there may be more at once.
    private func claim(_ state: inout PumpState, _ group: inout DiscardingTaskGroup) async -> Bool {
        let room = configuration.window - inHand
        guard room >= leastRoom else {
            state.hasRoom = false
            return false
        }
        state.hasRoom = true
        let now = clock.now()
        guard now >= state.retryStoreAt else { return false }
        let limit = min(room, configuration.batch)
        do {
            let order = ClaimOrder(limit: limit, owner: owner, now: now, leaseEnd: now + configuration.lease)
            let rows = try await store.claim(order)
            state.storeWorks(self)
            hand.withLock { $0.formUnion(rows.map(\.id)) }
            metrics.inHand.record(inHand)
            for row in rows {
                group.addTask { [self] in
                    let outcome = await work(row)
                    if let outcome { box.add(outcome) }
                    let left = hand.withLock { hand in
                        hand.remove(row.id)
                        return hand.count
                    }
                    // The pump may have looked at the box before there was room.
                    if outcome == nil || left == 0 || left == configuration.window - leastRoom { signal.ring() }
                }
            }
            if rows.count == limit {
                state.nextDue = now
                return true
            }
            // What is due and was not claimed is locked by another program's transaction: no use in asking at once.
            state.nextDue = try await store.nextDue().map { max($0, now + Relay.lockPause) }
            return false
        } catch {
            state.storeFailed(error, self)
            return false
        }
    }

    /// Writes what there is; what cannot be written is kept, and nothing more is claimed.
    private func flush(_ state: inout PumpState) async {
        state.unwritten += box.take()
        guard !state.unwritten.isEmpty, clock.now() >= state.retryStoreAt else { return }
        do {
            let finished = try await store.finish(state.unwritten, owner: owner)
            for row in finished { metrics.count(row.status) }
            state.unwritten = []
            state.storeWorks(self)
            health.progressed()
        } catch let error as RelayStoreError where error.code == .failed {
            await flushEach(&state)
        } catch {
            state.storeFailed(error, self)
        }
    }

    /// Writes outcomes one by one, after the database took exception to them all together: a row that another program's
    /// trigger keeps as it is, say, holds up no other.
    private func flushEach(_ state: inout PumpState) async {
        while let outcome = state.unwritten.first {
            do {
                for row in try await store.finish([outcome], owner: owner) { metrics.count(row.status) }
            } catch let error as RelayStoreError where error.code == .failed {
                // Its claim lapses, and it is tried again then, as one of which nobody knows.
                metrics.storeFailures.increment()
                logger.error(
                    "the database does not take what became of a row",
                    metadata: ["row": "\(outcome.row)", "error": "\(error)"]
                )
            } catch {
                state.storeFailed(error, self)
                return
            }
            state.unwritten.removeFirst()
        }
        state.storeWorks(self)
        health.progressed()
    }

    private func extend(_ state: inout PumpState) async {
        let now = clock.now()
        guard inHand > 0 || !state.unwritten.isEmpty, now >= state.extendAt else { return }
        do {
            let rows = hand.withLock { Array($0) } + state.unwritten.map(\.row)
            try await store.extend(rows, owner: owner, until: now + configuration.lease)
            state.extendAt = now + configuration.lease / 3
        } catch {
            state.storeFailed(error, self)
        }
    }

    /// How long there is nothing to do, unless something happens.
    private func pause(_ state: PumpState) -> Duration {
        let now = clock.now()
        var next = now + .seconds(30)
        if state.retryStoreAt > now { return state.retryStoreAt - now }
        if inHand > 0 || !state.unwritten.isEmpty { next = min(next, now + configuration.lease / 3) }
        if let due = state.nextDue, state.hasRoom { next = min(next, due) }
        return max(next - now, .milliseconds(1))
    }

    /// Rings when there may be something to do.
    func wake() { signal.ring() }

    /// Takes note of answers, and of deaths among them, which the brake may hold back.
    func noteDeaths(app: String, answers: Int, deaths: [Death]) async {
        let (mayMark, alarm) = brake.withLock {
            $0.note(app: app, answers: answers, deaths: deaths.count, at: clock.now())
        }
        if let alarm {
            logger.critical("tokens are no more marked dead", metadata: ["why": "\(alarm.words)"])
            showBrakes()
            // If it cannot be written now, it is with the next look at the queue.
            do { try await keep(alarm) } catch { health.lookFailure("\(error)") }
        }
        guard !deaths.isEmpty else { return }
        do {
            let count = try await store.bury(deaths, held: !mayMark)
            (mayMark ? metrics.deadTokens : metrics.heldTokens).increment(by: Int64(count))
        } catch {
            // It will be told again by the next answer.
            logger.warning("a dead token was not written down", metadata: ["error": "\(error)"])
        }
    }
}

/// What the pump remembers from one round to the next.
private struct PumpState {
    let lease: Duration
    var unwritten: [RowOutcome] = []
    var hasRoom = true
    var nextDue: WallTime?
    var extendAt = WallTime(milliseconds: 0)
    /// When the database is asked again after a failure.
    var retryStoreAt = WallTime(milliseconds: 0)
    private var storeFailures = 0

    init(lease: Duration) {
        self.lease = lease
    }

    mutating func storeWorks(_ relay: Relay) {
        guard storeFailures > 0 else { return }
        storeFailures = 0
        retryStoreAt = WallTime(milliseconds: 0)
        relay.health.storeFailure(nil)
        relay.logger.notice("the queue works again")
    }

    mutating func storeFailed(_ error: any Error, _ relay: Relay) {
        storeFailures += 1
        var policy = RetryPolicy()
        policy.firstPause = .milliseconds(200)
        policy.longestPause = .seconds(15)
        retryStoreAt = relay.clock.now() + policy.pause(after: storeFailures, share: Double.random(in: 0...1))
        relay.health.storeFailure("\(error)")
        relay.metrics.storeFailures.increment()
        if storeFailures == 1 || storeFailures.isMultiple(of: 20) {
            relay.logger.error("the queue does not work", metadata: ["error": "\(error)"])
        }
    }
}
