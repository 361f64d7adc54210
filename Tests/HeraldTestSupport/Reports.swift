import Synchronization
import Testing

/// Collects reports, and lets a test wait until they meet a condition.
package final class Reports<Heard: Sendable>: Sendable {
    private struct Waiter {
        let isMet: @Sendable (Heard) -> Bool
        let continuation: CheckedContinuation<Heard, Never>
    }

    private struct State {
        var heard: Heard
        var waiters: [UInt64: Waiter] = [:]
        var last: UInt64 = 0
    }

    private let state: Mutex<State>

    package init(_ heard: Heard) {
        state = Mutex(State(heard: heard))
    }

    package var heard: Heard { state.withLock { $0.heard } }

    /// Waits for a condition; after two minutes the test fails with what was heard.
    package func wait(until isMet: @escaping @Sendable (Heard) -> Bool) async -> Heard {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let limit = Task {
            try await Task.sleep(for: .seconds(120))  // pace: the limit of a wait
            guard let waiter = state.withLock({ $0.waiters.removeValue(forKey: number) }) else { return }
            Issue.record("the reports do not meet the condition: \(heard)")
            waiter.continuation.resume(returning: heard)
        }
        defer { limit.cancel() }
        return await withCheckedContinuation { continuation in
            let heard: Heard? = state.withLock { state in
                if isMet(state.heard) { return state.heard }
                state.waiters[number] = Waiter(isMet: isMet, continuation: continuation)
                return nil
            }
            if let heard { continuation.resume(returning: heard) }
        }
    }

    package func note(_ change: (inout Heard) -> Void) {
        let (met, heard) = state.withLock { state in
            change(&state.heard)
            let heard = state.heard
            let met = state.waiters.filter { $0.value.isMet(heard) }
            for number in met.keys { state.waiters[number] = nil }
            return (met.values.map(\.continuation), heard)
        }
        for continuation in met { continuation.resume(returning: heard) }
    }
}
