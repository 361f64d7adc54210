package import HeraldMailbox
import Synchronization

/// Collects the reports of a store, and lets a test wait for them.
package final class StoreWitness: MailboxStoreReporter, CompletionHandler {
    /// All reports, in order.
    package struct Heard: Sendable {
        package var stored: [StoredPut] = []
        package var failed: [Envelope] = []
        package var unknown: [Envelope] = []
        package var settled: [(number: UInt64, outcome: CompletionOutcome)] = []
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

    package func failed(_ envelopes: [Envelope]) {
        note { $0.failed += envelopes }
    }

    package func unknown(_ envelopes: [Envelope]) {
        note { $0.unknown += envelopes }
    }

    package func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        note { $0.settled.append((number, outcome)) }
    }

    /// Waits until the reports meet a condition.
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
