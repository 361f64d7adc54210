package import HeraldMailbox

/// Collects the reports of a store, and lets a test wait for them.
package final class StoreWitness: MailboxStoreReporter, CompletionHandler {
    /// All reports, in order.
    package struct Heard: Sendable {
        package var stored: [StoredPut] = []
        package var failed: [Envelope] = []
        package var unknown: [Envelope] = []
        package var settled: [(number: UInt64, outcome: CompletionOutcome)] = []
    }

    private let reports = Reports(Heard())

    package init() {}

    package var heard: Heard { reports.heard }

    package func stored(_ puts: [StoredPut]) {
        reports.note { $0.stored += puts }
    }

    package func failed(_ envelopes: [Envelope]) {
        reports.note { $0.failed += envelopes }
    }

    package func unknown(_ envelopes: [Envelope]) {
        reports.note { $0.unknown += envelopes }
    }

    package func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        reports.note { $0.settled.append((number, outcome)) }
    }

    /// Waits until the reports meet a condition.
    @discardableResult
    package func wait(until isMet: @escaping @Sendable (Heard) -> Bool) async -> Heard {
        await reports.wait(until: isMet)
    }
}
