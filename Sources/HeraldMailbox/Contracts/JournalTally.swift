package import HeraldModel
import Synchronization

/// Counts of the journal lines of one commit.
package struct JournalTally: Sendable {
    private var states: [Int] = Array(repeating: 0, count: Int(UInt8.max) + 1)
    private var isEmpty = true
    /// Requests by provider; those of the last one are in ``run``.
    private var finished: [SenderNumber: Int] = [:]
    private var run: (sender: SenderNumber, count: Int) = (.unknown, 0)
    /// The lines of refused requests.
    package private(set) var refused: [JournalEvent] = []

    package init() {}

    package mutating func count(_ event: JournalEvent) {
        states[Int(event.state.rawValue)] += 1
        isEmpty = false
        guard let request = event.request else { return }
        if request.sender != run.sender {
            finish()
            run.sender = request.sender
        }
        run.count += 1
        if event.refusal != nil { refused.append(event) }
    }

    package mutating func clear() {
        guard !isEmpty else { return }
        for index in states.indices { states[index] = 0 }
        finished.removeAll(keepingCapacity: true)
        run = (.unknown, 0)
        refused.removeAll()
        isEmpty = true
    }

    private mutating func finish() {
        if run.count > 0 { finished[run.sender, default: 0] += run.count }
        run.count = 0
    }

    /// The numbers of requests by provider, refused ones too.
    package var requests: [SenderNumber: Int] {
        var all = self
        all.finish()
        return all.finished
    }

    /// The numbers of lines that are not 0.
    package var counts: [JournalOutcome: Int] {
        guard !isEmpty else { return [:] }
        return JournalState.allCases.reduce(into: [:]) { counts, state in
            let count = states[Int(state.rawValue)]
            if count > 0 { counts[JournalOutcome(state), default: 0] += count }
        }
    }
}

/// Hears of the requests in each commit of the journal; one listener.
package final class JournalTallies: Sendable {
    private let listener = Mutex<(@Sendable (JournalTally, WallTime) -> Void)?>(nil)

    package init() {}

    /// Sets the listener, which must return at once: it runs in the store's thread.
    package func listen(_ listener: @escaping @Sendable (JournalTally, WallTime) -> Void) {
        self.listener.withLock { $0 = listener }
    }

    package func report(_ tally: JournalTally, at time: WallTime) {
        listener.withLock { $0 }?(tally, time)
    }
}
