import Dispatch
import Synchronization

/// Where everybody leaves orders for the writer, and where the writer sleeps.
///
/// An order costs the one who leaves it a lock and an append. The bell is rung only if the writer sleeps and what it
/// waits for is there.
final class WriteQueue: Sendable {
    /// What the writer waits for.
    struct Alarm: Sendable {
        /// So many orders for which somebody waits.
        let urgent: Int
        /// Or any order at all.
        let isForAny: Bool
    }

    private struct State {
        var orders: [WriteOrder] = []
        /// How many orders in `orders` somebody waits for.
        var urgent = 0
        /// How many, and how many bytes, were left and are not done: also those that the writer has taken.
        var pendingCount = 0
        var pendingBytes = 0
        var alarm: Alarm?
        var isClosing = false
        /// Whether the writer has ended.
        var isClosed = false
        var whenClosed: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())
    private let bell = DispatchSemaphore(value: 0)
    private let gate: StoreGate
    private let countLimit: Int
    private let byteLimit: Int

    init(gate: StoreGate, countLimit: Int, byteLimit: Int) {
        self.gate = gate
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    /// Leaves an order.
    /// - Returns: false if the store is closed; the order is not taken then.
    func append(_ order: WriteOrder) -> Bool {
        let bytes = order.payloadBytes
        let isUrgent = order.isUrgent
        let (isTaken, rings) = state.withLock { state in
            guard !state.isClosing else { return (false, false) }
            state.orders.append(order)
            if isUrgent { state.urgent += 1 }
            state.pendingCount += 1
            state.pendingBytes += bytes
            if state.pendingCount >= countLimit || state.pendingBytes >= byteLimit { gate.set(.overloaded) }
            return (true, WriteQueue.silenceAlarm(&state))
        }
        if rings { bell.signal() }
        return isTaken
    }

    /// Whether the alarm goes off; it goes off once.
    private static func silenceAlarm(_ state: inout State) -> Bool {
        guard let alarm = state.alarm else { return false }
        guard state.isClosing || state.urgent >= alarm.urgent || (alarm.isForAny && !state.orders.isEmpty) else {
            return false
        }
        state.alarm = nil
        return true
    }

    // For the writer.

    /// What was left since the writer last took: how many orders that somebody waits for, whether there are any, and
    /// whether the store is to close.
    var facts: (urgent: Int, isEmpty: Bool, isClosing: Bool) {
        state.withLock { ($0.urgent, $0.orders.isEmpty, $0.isClosing) }
    }

    /// Sleeps until the alarm goes off, or for so long; for ever if nil.
    func sleep(for duration: Duration?, alarm: Alarm) {
        let sleeps = state.withLock { state in
            state.alarm = alarm
            return !WriteQueue.silenceAlarm(&state)
        }
        guard sleeps else { return }
        if let duration {
            // A bell that rings just after the time is out ends the next sleep at once, which does no harm.
            _ = bell.wait(timeout: .now() + .nanoseconds(duration.wholeNanoseconds))
            state.withLock { $0.alarm = nil }
        } else {
            bell.wait()
        }
    }

    /// Hands over all orders, in the order in which they were left, behind those in `orders`.
    /// - Returns: How many of them somebody waits for.
    func take(into orders: inout [WriteOrder]) -> Int {
        state.withLock { state in
            defer { state.urgent = 0 }
            if orders.isEmpty {
                swap(&orders, &state.orders)
            } else {
                orders.append(contentsOf: state.orders)
                state.orders.removeAll(keepingCapacity: true)
            }
            return state.urgent
        }
    }

    /// Notes that orders are done, or have failed.
    func finished(count: Int, bytes: Int) {
        state.withLock { state in
            state.pendingCount -= count
            state.pendingBytes -= bytes
            // Some way below the limit, so that the store does not close and open with every commit.
            if state.pendingCount <= countLimit / 4 * 3, state.pendingBytes <= byteLimit / 4 * 3 {
                gate.clear(.overloaded)
            }
        }
    }

    /// Takes no more, lets the writer do what was left and end; then calls `done`.
    func close(_ done: (@Sendable () -> Void)? = nil) {
        gate.set(.closed)
        let (isClosed, rings) = state.withLock { state in
            state.isClosing = true
            guard !state.isClosed else { return (true, false) }
            if let done { state.whenClosed.append(done) }
            return (false, WriteQueue.silenceAlarm(&state))
        }
        if rings { bell.signal() }
        if isClosed { done?() }
    }

    /// The writer has ended.
    func closed() {
        let waiting = state.withLock { state in
            state.isClosed = true
            let waiting = state.whenClosed
            state.whenClosed = []
            return waiting
        }
        for done in waiting { done() }
    }
}

extension Duration {
    /// The duration in nanoseconds, at most what an `Int` holds; 0 if it is negative.
    var wholeNanoseconds: Int {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < Int64.max / 2_000_000_000 else { return .max }
        return Int(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
