import Synchronization

/// Collects reports, and lets a test wait until they meet a condition.
package final class Reports<Heard: Sendable>: Sendable {
    private struct State {
        var heard: Heard
        var waiters: [(isMet: @Sendable (Heard) -> Bool, continuation: CheckedContinuation<Heard, Never>)] = []
    }

    private let state: Mutex<State>

    package init(_ heard: Heard) {
        state = Mutex(State(heard: heard))
    }

    package var heard: Heard { state.withLock { $0.heard } }

    package func wait(until isMet: @escaping @Sendable (Heard) -> Bool) async -> Heard {
        await withCheckedContinuation { continuation in
            let heard: Heard? = state.withLock { state in
                if isMet(state.heard) { return state.heard }
                state.waiters.append((isMet, continuation))
                return nil
            }
            if let heard { continuation.resume(returning: heard) }
        }
    }

    package func note(_ change: (inout Heard) -> Void) {
        let (met, heard) = state.withLock { state in
            change(&state.heard)
            let heard = state.heard
            let met = state.waiters.filter { $0.isMet(heard) }.map(\.continuation)
            state.waiters.removeAll { $0.isMet(heard) }
            return (met, heard)
        }
        for continuation in met { continuation.resume(returning: heard) }
    }
}
