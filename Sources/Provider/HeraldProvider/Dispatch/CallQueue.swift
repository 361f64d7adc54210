import NIOCore

/// Bounded queue of the calls that wait for a connection.
struct CallQueue<Call: QueuedCall> {
    private var calls = CircularBuffer<Call>()
    private let limit: Int
    /// Number of calls that are not cancelled.
    private(set) var count = 0
    /// Whether the queue refuses new calls.
    private(set) var isClosed = false

    init(limit: Int) {
        self.limit = limit
    }

    var isEmpty: Bool { count == 0 }

    /// Refuses new calls.
    mutating func close() {
        isClosed = true
    }

    /// Queues a call, or ends it with the reason for refusing it.
    mutating func accept(_ call: Call) {
        if call.isCancelled {
            call.end(.cancelled)
        } else if isClosed {
            call.end(.failed(ProviderError(.shutDown, "the client was shut down")))
        } else if count >= limit {
            call.end(.failed(ProviderError(.overloaded, "\(limit) notifications are queued already: send more slowly")))
        } else {
            call.stage = .waiting
            count += 1
            calls.append(call)
        }
    }

    /// Ends a call as cancelled, in the queue or on a connection.
    mutating func cancel(_ call: Call) {
        call.isCancelled = true
        if call.stage == .waiting { count -= 1 }
        if call.stage != .new { call.end(.cancelled) }
    }

    /// The first call that is not cancelled, without removing it.
    mutating func first() -> Call? {
        while let call = calls.first {
            if call.stage == .waiting { return call }
            calls.removeFirst()
        }
        return nil
    }

    /// Removes the first call that is not cancelled and marks it as sent.
    mutating func takeFirst() -> Call? {
        guard let call = first() else { return nil }
        calls.removeFirst()
        count -= 1
        call.stage = .sent
        return call
    }

    /// Returns a sent call to the head of the queue.
    mutating func putBack(_ call: Call) {
        call.stage = .waiting
        count += 1
        calls.prepend(call)
    }

    /// Ends the queued calls that match.
    mutating func fail(_ error: ProviderError, where matches: (Call) -> Bool) {
        for call in calls where call.stage == .waiting && matches(call) {
            count -= 1
            call.end(.failed(error))
        }
        calls.removeAll { $0.stage != .waiting }
    }
}
