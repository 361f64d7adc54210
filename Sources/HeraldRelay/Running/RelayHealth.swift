import HeraldModel
import Synchronization

/// Whether the relay makes progress: not whether its process lives.
package final class RelayHealth: Sendable {
    private struct State {
        var progress: QueueProgress?
        var storeFailure: String?
        /// That it could not be looked at, which is over with the next look.
        var lookFailure: String?
        var brakes: [DeathBrake.Alarm] = []
        var problems: [String] = []
        var troubles: [String] = []
        var lastWrite: WallTime?
    }

    private let limit: Duration
    private let clock: any WallClock
    private let state = Mutex(State())

    init(limit: Duration, clock: any WallClock) {
        self.limit = limit
        self.clock = clock
    }

    /// What is wrong, each in one line; nothing if all is well.
    package var problems: [String] {
        state.withLock { state in
            var problems: [String] = []
            if let failure = state.storeFailure ?? state.lookFailure {
                problems.append("the queue does not work: \(failure)")
            }
            if let age = state.progress?.oldestUnsentSeconds, age > Double(limit.wholeMilliseconds) / 1000 {
                problems.append("the oldest row that is not sent has waited for \(Int(age)) s")
            }
            problems += state.problems + state.brakes.map(\.words)
            return problems
        }
    }

    /// What is not as it should be, and no reason to call the relay unhealthy yet.
    package var notes: [String] { state.withLock { $0.troubles } }

    /// How the queue stood when it was looked at last.
    package var progress: QueueProgress? { state.withLock { $0.progress } }

    func stands(_ progress: QueueProgress, problems: [String], troubles: [String]) {
        state.withLock { state in
            state.progress = progress
            state.lookFailure = nil
            state.problems = problems
            state.troubles = troubles
        }
    }

    func storeFailure(_ words: String?) { state.withLock { $0.storeFailure = words } }
    func lookFailure(_ words: String) { state.withLock { $0.lookFailure = words } }
    func brakes(_ alarms: [DeathBrake.Alarm]) { state.withLock { $0.brakes = alarms } }
    func isBraked(_ app: String) -> Bool { state.withLock { $0.brakes.contains { $0.app == app } } }
    func progressed() { state.withLock { $0.lastWrite = clock.now() } }
}
