import Synchronization

/// Wakes one waiting task; what comes while nobody waits is remembered, once.
final class WakeSignal: Sendable {
    private enum State {
        case quiet
        case rung
        case waiting(CheckedContinuation<Void, Never>)
    }

    private let state = Mutex(State.quiet)

    func ring() {
        let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
            switch state {
            case .quiet:
                state = .rung
                return nil
            case .rung: return nil
            case .waiting(let continuation):
                state = .quiet
                return continuation
            }
        }
        waiting?.resume()
    }

    /// Waits until it rings, or so long.
    func wait(atMost longest: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                // Ends the other wait too, if it is still there.
                guard (try? await Task.sleep(for: longest)) != nil else { return }
                ring()
            }
            group.addTask { [self] in await wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRung = state.withLock { state in
                    if case .rung = state {
                        state = .quiet
                        return true
                    }
                    if Task.isCancelled { return true }
                    state = .waiting(continuation)
                    return false
                }
                if isRung { continuation.resume() }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
                guard case .waiting(let continuation) = state else { return nil }
                state = .quiet
                return continuation
            }
            waiting?.resume()
        }
    }
}
