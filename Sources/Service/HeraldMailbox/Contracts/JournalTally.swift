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
        if event.state == .refusedByService { refused.append(event) }
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
        var all = finished
        if run.count > 0 { all[run.sender, default: 0] += run.count }
        return all
    }

    /// Passes each state that has lines, and their number.
    package func forEachState(_ body: (JournalState, Int) -> Void) {
        guard !isEmpty else { return }
        for (code, count) in states.enumerated() where count > 0 {
            if let state = JournalState(rawValue: UInt8(truncatingIfNeeded: code)) { body(state, count) }
        }
    }
}

/// Hears of the requests in each commit of the journal; one listener.
package final class JournalTallies: Sendable {
    /// A struct, because each access to a closure in a `Mutex` wraps it in two more thunks, which would stay.
    private struct Listener {
        let hear: @Sendable (JournalTally, WallTime) -> Void
    }

    private let listener = Mutex<Listener?>(nil)

    package init() {}

    /// Sets the listener, which must return at once: it runs in the store's thread.
    package func listen(_ listener: @escaping @Sendable (JournalTally, WallTime) -> Void) {
        self.listener.withLock { $0 = Listener(hear: listener) }
    }

    package func report(_ tally: JournalTally, at time: WallTime) {
        listener.withLock { $0 }?.hear(tally, time)
    }
}
