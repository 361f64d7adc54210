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
    func mark(_ reports: [RowOutcome.DeadTokenReport]) async {
        guard !reports.isEmpty else { return }
        // If this fails, the next check of the queue stores them.
        do { try await storeOpened() } catch { context.health.checkFailure("\(error)") }
        await mark(reports.filter { !$0.isHeld }.map(\.token), held: false)
        await mark(reports.filter(\.isHeld).map(\.token), held: true)
    }

    private func mark(_ tokens: [DeadToken], held: Bool) async {
        guard !tokens.isEmpty else { return }
        do {
            let count = try await context.store.markDead(tokens, held: held)
            (held ? context.metrics.heldTokens : context.metrics.deadTokens).increment(by: Int64(count))
        } catch {
            // The next answer for the token reports it again.
            context.logger.warning("cannot mark dead tokens", metadata: ["error": "\(error)"])
        }
    }

    /// Adopts the breakers in the database, and stores those that are missing there.
    /// - Parameters:
    ///   - found: Breakers in the database.
    ///   - known: ``stored`` before `found` was read.
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
