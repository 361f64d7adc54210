import NIOCore

/// The calls that wait for a connection, in their order, and no more of them than was said.
struct CallQueue<Call: QueuedCall> {
    private var calls = CircularBuffer<Call>()
    private let limit: Int
    /// How many somebody waits for.
    private(set) var count = 0
    /// Whether no further call is taken.
    private(set) var isClosed = false

    init(limit: Int) {
        self.limit = limit
    }

    var isEmpty: Bool { count == 0 }

    /// Takes no further call.
    mutating func close() {
        isClosed = true
    }

    /// Takes a call, or ends it with why not.
    mutating func accept(_ call: Call) {
        if call.isCancelled {
            call.end(.cancelled)
        } else if isClosed {
            call.end(.failed(ProviderError(.shutDown, "the client was shut down")))
        } else if count >= limit {
            call.end(.failed(ProviderError(.overloaded, "\(limit) notifications wait already: send more slowly")))
        } else {
            call.stage = .waiting
            count += 1
            calls.append(call)
        }
    }

    /// Notes that nobody waits for a call any more, wherever it is.
    mutating func cancel(_ call: Call) {
        call.isCancelled = true
        if call.stage == .waiting { count -= 1 }
        if call.stage != .new { call.end(.cancelled) }
    }

    /// The first that somebody waits for; it stays.
    mutating func first() -> Call? {
        while let call = calls.first {
            if call.stage == .waiting { return call }
            calls.removeFirst()
        }
        return nil
    }

    /// Takes the first that somebody waits for out of the queue: it is on a connection.
    mutating func takeFirst() -> Call? {
        guard let call = first() else { return nil }
        calls.removeFirst()
        count -= 1
        call.stage = .sent
        return call
    }

    /// Puts one that was on a connection back to the head.
    mutating func putBack(_ call: Call) {
        call.stage = .waiting
        count += 1
        calls.prepend(call)
    }

    /// Ends those that are meant.
    mutating func fail(_ error: ProviderError, where isMeant: (Call) -> Bool) {
        for call in calls where call.stage == .waiting && isMeant(call) {
            count -= 1
            call.end(.failed(error))
        }
        calls.removeAll { $0.stage != .waiting }
    }
}
