import Synchronization

/// The queue of requests for the writer, which sleeps on it.
///
/// A request costs its caller a lock and an append. It signals the writer only if the writer sleeps and its wake-up
/// condition holds.
final class WriteQueue: Sendable {
    /// The condition under which the writer wakes up.
    struct WakeUp: Sendable {
        /// This many urgent requests.
        let urgent: Int
        /// Or any request.
        let isForAny: Bool
    }

    private struct State {
        var requests: [WriteRequest] = []
        /// Urgent requests in `requests`.
        var urgent = 0
        /// Requests and bytes that are not finished, with those that the writer has taken.
        var pendingCount = 0
        var pendingBytes = 0
        var wakeUp: WakeUp?
        var isClosing = false
        /// Whether the writer has ended.
        var isClosed = false
        var whenClosed: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())
    private let signal = MonotonicSemaphore()
    private let gate: StoreGate
    private let countLimit: Int
    private let byteLimit: Int

    init(gate: StoreGate, countLimit: Int, byteLimit: Int) {
        self.gate = gate
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    /// Adds a request.
    /// - Returns: false if the store is closed; the request is then not accepted.
    func append(_ request: WriteRequest) -> Bool {
        let bytes = request.payloadBytes
        let isUrgent = request.isUrgent
        let (isTaken, wakes) = state.withLock { state in
            guard !state.isClosing else { return (false, false) }
            state.requests.append(request)
            if isUrgent { state.urgent += 1 }
            state.pendingCount += 1
            state.pendingBytes += bytes
            if state.pendingCount >= countLimit || state.pendingBytes >= byteLimit { gate.set(.overloaded) }
            return (true, WriteQueue.takeWakeUp(&state))
        }
        if wakes { signal.signal() }
        return isTaken
    }

    /// Whether the writer is to wake up; true only once for each sleep.
    private static func takeWakeUp(_ state: inout State) -> Bool {
        guard let wakeUp = state.wakeUp else { return false }
        guard state.isClosing || state.urgent >= wakeUp.urgent || (wakeUp.isForAny && !state.requests.isEmpty) else {
            return false
        }
        state.wakeUp = nil
        return true
    }

    /// Requests that are not finished.
    var pendingRequests: Int { state.withLock { $0.pendingCount } }

    // MARK: - The writer's side

    /// Urgent requests in the queue, whether the queue is empty, and whether the store is closing.
    var facts: (urgent: Int, isEmpty: Bool, isClosing: Bool) {
        state.withLock { ($0.urgent, $0.requests.isEmpty, $0.isClosing) }
    }

    /// Sleeps until the condition holds, or for a duration if there is one.
    func sleep(for duration: Duration?, wakeUp: WakeUp) {
        let sleeps = state.withLock { state in
            state.wakeUp = wakeUp
            return !WriteQueue.takeWakeUp(&state)
        }
        guard sleeps else { return }
        signal.wait(for: duration)
        // A signal just after the timeout ends the next sleep at once, which is harmless.
        if duration != nil { state.withLock { $0.wakeUp = nil } }
    }

    /// Moves all requests, oldest first, to the end of `requests`.
    /// - Returns: The number of urgent ones.
    func take(into requests: inout [WriteRequest]) -> Int {
        state.withLock { state in
            defer { state.urgent = 0 }
            if requests.isEmpty {
                swap(&requests, &state.requests)
            } else {
                requests.append(contentsOf: state.requests)
                state.requests.removeAll(keepingCapacity: true)
            }
            return state.urgent
        }
    }

    /// Records that requests are done, or have failed.
    func finished(count: Int, bytes: Int) {
        state.withLock { state in
            state.pendingCount -= count
            state.pendingBytes -= bytes
            // Hysteresis: the gate opens below the limit, so that it does not change with every commit.
            if state.pendingCount <= countLimit / 4 * 3, state.pendingBytes <= byteLimit / 4 * 3 {
                gate.clear(.overloaded)
            }
        }
    }

    /// Refuses further requests, lets the writer finish the queue and end, then calls `done`.
    func close(_ done: (@Sendable () -> Void)? = nil) {
        gate.set(.closed)
        let (isClosed, wakes) = state.withLock { state in
            state.isClosing = true
            guard !state.isClosed else { return (true, false) }
            if let done { state.whenClosed.append(done) }
            return (false, WriteQueue.takeWakeUp(&state))
        }
        if wakes { signal.signal() }
        if isClosed { done?() }
    }

    /// Records that the writer has ended.
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
    /// The duration in nanoseconds, clamped to `Int`; 0 if it is negative.
    var wholeNanoseconds: Int {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < Int64.max / 2_000_000_000 else { return .max }
        return Int(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
