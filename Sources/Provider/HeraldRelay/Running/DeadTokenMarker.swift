import CoreMetrics
import HeraldModel
import Logging
import Synchronization

/// Decides whether tokens are marked dead: not while the app's circuit breaker is open.
///
/// ``DeadTokenQueries/markDead(_:held:)`` writes it into the database.
/// The database keeps open breakers until an operator resets them.
final class DeadTokenMarker: Sendable {
    private let context: RelayContext
    private let breaker: Mutex<DeadTokenBreaker>

    init(_ context: RelayContext) {
        self.context = context
        breaker = Mutex(DeadTokenBreaker(context.configuration.deadTokenLimits))
    }

    /// Breakers that the database is known to keep.
    var stored: [DeadTokenBreaker.Trip] { breaker.withLock { $0.stored } }

    /// Counts answers.
    /// - Returns: Whether the dead tokens among them are only held, because marking is suspended.
    func note(app: String, answers: Int, deadTokens: Int) -> Bool {
        let (mayMark, trip) = breaker.withLock {
            $0.note(app: app, answers: answers, deadTokens: deadTokens, at: context.clock.now())
        }
        if let trip {
            logOpen(trip)
            showBreakers()
        }
        return !mayMark
    }

    /// Marks dead tokens, and stores a breaker that they opened.
    /// - Returns: Those that the database did not take.
    @discardableResult
    func mark(_ reports: [RowOutcome.DeadTokenReport]) async -> [RowOutcome.DeadTokenReport] {
        guard !reports.isEmpty else { return [] }
        // If this fails, the next check of the queue stores them.
        do { try await storeOpened() } catch { context.health.checkFailure("\(error)") }
        var left: [RowOutcome.DeadTokenReport] = []
        for held in [false, true] {
            let group = reports.filter { $0.isHeld == held }
            if await !mark(group.map(\.token), held: held) { left += group }
        }
        return left
    }

    /// - Returns: Whether the database took them.
    private func mark(_ tokens: [DeadToken], held: Bool) async -> Bool {
        guard !tokens.isEmpty else { return true }
        do {
            let count = try await context.store.markDead(tokens, held: held)
            (held ? context.metrics.heldTokens : context.metrics.deadTokens).increment(by: Int64(count))
            return true
        } catch {
            // The next answer for a token reports it again; ``FeedbackPoll`` keeps those of a list.
            context.logger.warning("cannot mark dead tokens", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// Adopts the breakers in the database, and stores those that are missing there.
    ///
    /// `known` is ``stored`` before `found` was read.
    /// - Throws: ``RelayStoreError``.
    func reconcile(_ found: [QueueProgress.Breaker], known: [DeadTokenBreaker.Trip]) async throws {
        let trips = found.map { breaker in
            DeadTokenBreaker.Trip(
                app: breaker.app,
                deadTokens: breaker.deadTokens,
                answers: breaker.answers,
                since: WallTime(rfc3339: breaker.since) ?? context.clock.now()
            )
        }
        let (opened, reset) = breaker.withLock { $0.reconcile(trips, known: known) }
        for trip in opened { logOpen(trip) }
        for trip in reset { context.logger.notice("dead tokens are marked again", metadata: ["app": "\(trip.app)"]) }
        showBreakers()
        try await storeOpened()
    }

    private func storeOpened() async throws {
        for trip in breaker.withLock({ $0.unstored }) {
            try await context.store.save(trip)
            breaker.withLock { $0.didStore(trip) }
        }
    }

    private func logOpen(_ trip: DeadTokenBreaker.Trip) {
        context.logger.critical(
            "too many dead tokens: marking is suspended",
            metadata: ["why": "\(trip.description)"]
        )
    }

    private func showBreakers() {
        let trips = breaker.withLock { $0.trips }
        context.health.breakers(trips)
        context.metrics.breakers.record(trips.count)
    }
}
