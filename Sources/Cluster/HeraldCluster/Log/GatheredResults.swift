import Synchronization

/// The results of several operations that are under way at once: of a read that goes to several partitions, for example.
final class GatheredResults<Element: Sendable>: Sendable {
    private struct State {
        var left: Int
        var found: [Element] = []
        var failure: (any Error)?
    }

    private let state: Mutex<State>
    private let done: @Sendable (Result<[Element], any Error>) -> Void

    /// `done` is called once, with all results in no order, or with an error of any operation.
    init(_ count: Int, _ done: @escaping @Sendable (Result<[Element], any Error>) -> Void) {
        state = Mutex(State(left: count))
        self.done = done
        if count == 0 { done(.success([])) }
    }

    func add(_ result: Result<[Element], any Error>) {
        let whole: Result<[Element], any Error>? = state.withLock { state in
            switch result {
            case .success(let found): state.found += found
            case .failure(let error): state.failure = error
            }
            state.left -= 1
            guard state.left == 0 else { return nil }
            return state.failure.map { .failure($0) } ?? .success(state.found)
        }
        if let whole { done(whole) }
    }
}
