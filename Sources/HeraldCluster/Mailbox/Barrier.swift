/// The barrier of one node in one stream: a small write that proves what the log had committed when it was made.
///
/// Who must read something fresh waits for a write that was begun after the question, then reads at its sequence or later.
/// One write serves all that wait. A leader that has lost its followers cannot make one, and so proves nothing stale.
struct Barrier<Waiter: Sendable> {
    /// An order to the driver.
    enum Order {
        /// Writes the node's barrier record.
        case append
        /// Writes it after a pause.
        case pause
        /// Everything committed before they began to wait has this sequence or a smaller one.
        case serve([Waiter], sequence: UInt64)
    }

    private var waiting: [Waiter] = []
    private var served: [Waiter] = []
    private var isBusy = false

    /// Adds a waiter; a write that is on its way was begun too early for it.
    mutating func wait(_ waiter: Waiter) -> [Order] {
        waiting.append(waiter)
        return isBusy ? [] : begin()
    }

    mutating func appended(_ outcome: AppendOutcome) -> [Order] {
        switch outcome {
        case .stored(let sequence):
            isBusy = false
            defer { served = [] }
            return [.serve(served, sequence: sequence)] + (waiting.isEmpty ? [] : begin())
        case .refused, .notSent, .unknown, .moved:
            // The record says nothing, so writing it twice does no harm.
            return [.pause]
        }
    }

    /// Ends a pause, and removes the waiters that have waited too long.
    /// - Returns: The removed ones.
    mutating func pauseOver(dropping isOverdue: (Waiter) -> Bool) -> (orders: [Order], overdue: [Waiter]) {
        let all = served + waiting
        served = all.filter { !isOverdue($0) }
        waiting = []
        isBusy = !served.isEmpty
        return (isBusy ? [.append] : [], all.filter(isOverdue))
    }

    private mutating func begin() -> [Order] {
        isBusy = true
        served = waiting
        waiting = []
        return [.append]
    }
}
