import HeraldModel
import Synchronization

/// Health of a relay: whether it makes progress, not whether its process runs.
package final class RelayHealth: Sendable {
    private struct State {
        var progress: QueueProgress?
        var storeFailure: String?
        /// Failure of the last check of the queue.
        var checkFailure: String?
        var breakers: [DeadTokenBreaker.Trip] = []
        var problems: [String] = []
        var warnings: [String] = []
    }

    private let limit: Duration
    private let state = Mutex(State())

    init(limit: Duration) {
        self.limit = limit
    }

    /// Problems that make the relay unhealthy, one line each.
    package var problems: [String] {
        state.withLock { state in
            var problems: [String] = []
            if let failure = state.storeFailure ?? state.checkFailure {
                problems.append("the queue's database does not work: \(failure)")
            }
            if let age = state.progress?.oldestUnsentSeconds, age > Double(limit.wholeMilliseconds) / 1000 {
                problems.append("the oldest unsent row has waited for \(Int(age)) s")
            }
            return problems + state.problems + state.breakers.map(\.description)
        }
    }

    /// Problems that do not make the relay unhealthy yet, one line each.
    package var notes: [String] { state.withLock { $0.warnings } }

    /// Result of the last check of the queue.
    package var progress: QueueProgress? { state.withLock { $0.progress } }

    func update(_ progress: QueueProgress, problems: [String], warnings: [String]) {
        state.withLock { state in
            state.progress = progress
            state.checkFailure = nil
            state.problems = problems
            state.warnings = warnings
        }
    }

    /// A failure of the queue's database; nil when it works again, which ends that of a check, too.
    func storeFailure(_ message: String?) {
        state.withLock { state in
            state.storeFailure = message
            if message == nil { state.checkFailure = nil }
        }
    }

    func checkFailure(_ message: String) { state.withLock { $0.checkFailure = message } }
    func breakers(_ trips: [DeadTokenBreaker.Trip]) { state.withLock { $0.breakers = trips } }

    /// Whether the breaker of one of the app's topics is open, those with the suffix of a push type included.
    func hasOpenBreaker(_ app: RelayApp) -> Bool {
        let trips = state.withLock { $0.breakers }
        return trips.contains { trip in
            trip.app == app.breaker(of: trip.topic) && Topic(trip.topic).map(app.includes) == true
        }
    }
}
