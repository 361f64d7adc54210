import NIOCore

/// Devices of a cluster's node on their way in: some at once, the others wait in the order in which they came.
///
/// An arrival costs the NATS servers a claim, a session and a read of the mailbox. When everybody returns at once, they are
/// the bottleneck, and notifications share it: what is under way is bounded, so a notification waits for little.
///
/// It has neither clock nor lock.
struct ArrivalQueue<Arrival> {
    /// The arrivals whose turn it is, and those that have waited for too long.
    struct Turn {
        var begins: [Arrival] = []
        var refused: [Arrival] = []
    }

    private let limit: Int
    private let longestWait: TimeAmount
    private var underWay = 0
    private var waiting: CircularBuffer<(arrival: Arrival, since: NIODeadline)> = []

    /// - Parameters:
    ///   - limit: Arrivals under way, with the reads of those that have arrived.
    ///   - longestWait: The time after which one that waits is refused.
    init(limit: Int, longestWait: Duration) {
        self.limit = limit
        self.longestWait = TimeAmount(longestWait)
    }

    var count: Int { waiting.count }

    /// An arrival begins, or waits; `reads` of mailboxes are under way.
    mutating func add(_ arrival: Arrival, at now: NIODeadline, reads: Int) -> Turn {
        waiting.append((arrival, now))
        return turn(at: now, reads: reads)
    }

    /// The second half of an arrival, its session, begins: it has waited already.
    mutating func continues() { underWay += 1 }

    /// An arrival, or its second half, has ended.
    mutating func ended(at now: NIODeadline, reads: Int) -> Turn {
        underWay -= 1
        return turn(at: now, reads: reads)
    }

    /// Time has passed.
    mutating func turn(at now: NIODeadline, reads: Int) -> Turn {
        var turn = Turn()
        while let first = waiting.first, now - first.since > longestWait {
            turn.refused.append(waiting.removeFirst().arrival)
        }
        // One is always under way: its end is the next one's turn, also if reads take all of the room.
        while underWay == 0 || underWay + reads < limit, let next = waiting.popFirst() {
            underWay += 1
            turn.begins.append(next.arrival)
        }
        return turn
    }
}
