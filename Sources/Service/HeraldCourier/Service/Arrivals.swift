import NIOCore
import Synchronization

/// Performs what an ``ArrivalQueue`` decides.
final class Arrivals: Sendable {
    /// A device on its way in.
    struct Arrival: Sendable {
        /// Begins; whoever performs it calls ``Arrivals/ended()`` once, when it is over.
        let begin: @Sendable () -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        var queue: ArrivalQueue<Arrival>
        /// Beginnings and refusals that are due.
        var due: [@Sendable () -> Void] = []
        /// Whether a thread performs what is due: one at a time, and never one call inside of another.
        var isPerforming = false
    }

    private let state: Mutex<State>
    private let reads: @Sendable () -> Int

    /// `reads` is the number of the reads of mailboxes that are under way.
    init(_ configuration: CourierConfiguration, reads: @escaping @Sendable () -> Int) {
        let queue = ArrivalQueue<Arrival>(
            limit: configuration.arrivalsUnderWay,
            longestWait: configuration.longestArrivalWait
        )
        state = Mutex(State(queue: queue))
        self.reads = reads
    }

    /// The arrivals that wait for their turn.
    var waitingCount: Int { state.withLock { $0.queue.count } }

    func add(_ arrival: Arrival) { turn { $0.add(arrival, at: .now(), reads: reads()) } }

    func continues() { state.withLock { $0.queue.continues() } }

    func ended() { turn { $0.ended(at: .now(), reads: reads()) } }

    /// Refuses those that have waited for too long, once a second, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            turn { $0.turn(at: .now(), reads: reads()) }
        }
    }

    private func turn(_ body: (inout ArrivalQueue<Arrival>) -> ArrivalQueue<Arrival>.Turn) {
        let performs = state.withLock { state in
            let turn = body(&state.queue)
            state.due += turn.refused.map(\.refuse) + turn.begins.map(\.begin)
            guard !state.due.isEmpty, !state.isPerforming else { return false }
            state.isPerforming = true
            return true
        }
        guard performs else { return }
        while true {
            let due = state.withLock { state in
                defer { state.due = [] }
                if state.due.isEmpty { state.isPerforming = false }
                return state.due
            }
            guard !due.isEmpty else { return }
            for perform in due { perform() }
        }
    }
}
