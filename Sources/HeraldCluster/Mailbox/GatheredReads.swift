import HeraldMailbox
import Synchronization

/// The answers of one read that goes to several partitions, or is too large for one question.
final class GatheredReads: Sendable {
    private struct State {
        var left: Int
        var found: [StoredNotification] = []
        var failure: (any Error)?
    }

    private let state: Mutex<State>
    private let done: @Sendable (Result<[StoredNotification], any Error>) -> Void

    /// `done` is called once, with all that was found in the order of the log, or with an error of any part.
    init(_ count: Int, _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void) {
        state = Mutex(State(left: count))
        self.done = done
        if count == 0 { done(.success([])) }
    }

    func add(_ result: Result<[StoredNotification], any Error>) {
        let whole: Result<[StoredNotification], any Error>? = state.withLock { state in
            switch result {
            case .success(let found): state.found += found
            case .failure(let error): state.failure = error
            }
            state.left -= 1
            guard state.left == 0 else { return nil }
            if let failure = state.failure { return .failure(failure) }
            return .success(state.found.sorted { $0.sequence < $1.sequence })
        }
        if let whole { done(whole) }
    }
}
