import Synchronization

/// Counts the requests of one batch that have no outcome yet, and collects those that their first attempt did not end.
final class RequestBatch: Sendable {
    /// A request that goes on after its first attempt.
    struct Remainder: Sendable {
        let index: Int
        let execution: RequestExecution
        let step: ProviderClient.Step
    }

    private struct State {
        var open: Int
        var remainders: [Remainder] = []
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(open: count))
    }

    /// Notes the outcome of one request.
    func hasEnded() {
        change { $0.open -= 1 }
    }

    func add(_ remainder: Remainder) {
        change { $0.remainders.append(remainder) }
    }

    /// Waits for a request that goes on.
    ///
    /// A cancelled task waits too: cancelling ends the requests, and their outcomes are reported.
    /// - Returns: nil once all requests have their outcomes.
    func next() async -> Remainder? {
        while true {
            let (remainder, isOver) = state.withLock { ($0.remainders.popLast(), $0.open == 0) }
            if let remainder { return remainder }
            if isOver { return nil }
            await withCheckedContinuation { continuation in
                change { $0.waiting = continuation }
            }
        }
    }

    /// Changes the state, and resumes the waiting task if there is something for it.
    private func change(_ body: (inout sending State) -> Void) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            body(&state)
            guard state.open == 0 || !state.remainders.isEmpty else { return nil }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }
}
