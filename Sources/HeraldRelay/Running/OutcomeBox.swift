import Synchronization

/// What became of rows and is not written yet.
final class OutcomeBox: Sendable {
    private let outcomes = Mutex<[RowOutcome]>([])
    private let signal: WakeSignal

    init(_ signal: WakeSignal) {
        self.signal = signal
    }

    func add(_ outcome: RowOutcome) {
        let isFirst = outcomes.withLock { outcomes in
            outcomes.append(outcome)
            return outcomes.count == 1
        }
        if isFirst { signal.ring() }
    }

    /// Takes what is there; what comes meanwhile is for the next time, and so they gather while a commit takes its time.
    func take() -> [RowOutcome] {
        outcomes.withLock { outcomes in
            defer { outcomes.removeAll(keepingCapacity: true) }
            return outcomes
        }
    }
}
