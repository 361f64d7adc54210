package import HeraldMailbox
import Synchronization

/// Hears what a store reports, and lets a test wait for it.
package final class StoreWitness: MailboxStoreReporter, ReceiptDesk {
    /// All that was heard, in order.
    package struct Heard: Sendable {
        package var stored: [StoredPut] = []
        package var failed: [Letter] = []
        package var settled: [(number: UInt64, outcome: ReceiptOutcome)] = []
    }

    private struct State {
        var heard = Heard()
        var waiters: [(isMet: @Sendable (Heard) -> Bool, continuation: CheckedContinuation<Heard, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var heard: Heard { state.withLock { $0.heard } }

    package func stored(_ puts: [StoredPut]) {
        note { $0.stored += puts }
    }

    package func failed(_ letters: [Letter]) {
        note { $0.failed += letters }
    }

    package func settle(_ number: UInt64, _ outcome: ReceiptOutcome) {
        note { $0.settled.append((number, outcome)) }
    }

    /// Waits until what was heard meets a condition.
    @discardableResult
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

    private func note(_ change: (inout Heard) -> Void) {
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
