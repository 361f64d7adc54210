import Synchronization

/// Wakes one waiting task; a notification without a waiting task is remembered once.
final class AsyncSignal: Sendable {
    private struct State {
        var isSet = false
        var waiting: AsyncStream<Void>.Continuation?
    }

    private let state = Mutex(State())

    func notify() {
        state.withLock { state in
            guard let waiting = state.waiting.take() else {
                state.isSet = true
                return
            }
            waiting.yield()
        }
    }

    /// Waits for a notification, at most `longest`.
    func wait(atMost longest: Duration) async {
        let (stream, waiting) = AsyncStream<Void>.makeStream()
        let isSet = state.withLock { state in
            defer { state.isSet = false }
            if !state.isSet { state.waiting = waiting }
            return state.isSet
        }
        guard !isSet else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in stream { return } }
            group.addTask { try? await Task.sleep(for: longest) }
            await group.next()
            group.cancelAll()
        }
        // Nobody hears a notification that comes now: whoever waited looks for the change after this.
        state.withLock { $0.waiting = nil }
    }
}
