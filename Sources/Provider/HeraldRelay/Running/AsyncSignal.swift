import Synchronization

/// Wakes one waiting task; a notification without a waiting task is remembered once.
final class AsyncSignal: Sendable {
    private enum State {
        case idle
        case set
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.idle)

    func notify() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            switch state {
            case .idle:
                state = .set
                return nil
            case .set: return nil
            case .waiting(let continuation):
                state = .idle
                return continuation
            }
        }
        waiting?.resume()
    }

    /// Waits for a notification, at most `longest`.
    func wait(atMost longest: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                // Also ends the other task.
                guard (try? await Task.sleep(for: longest)) != nil else { return }
                notify()
            }
            group.addTask { [self] in await wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isSet = state.withLock { state in
                    if case .set = state {
                        state = .idle
                        return true
                    }
                    if Task.isCancelled { return true }
                    state = .waiting(continuation)
                    return false
                }
                if isSet { continuation.resume() }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
                guard case .waiting(let continuation) = state else { return nil }
                state = .idle
                return continuation
            }
            waiting?.resume()
        }
    }
}
