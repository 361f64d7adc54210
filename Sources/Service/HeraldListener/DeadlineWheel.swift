package import NIOCore

/// An object with a deadline, usually a connection.
package protocol DeadlineHolder: AnyObject {
    /// The time of the next ``deadlinePassed()``; nil for none. Moving it later costs nothing: the wheel notices when the
    /// earlier time comes.
    var deadline: NIODeadline? { get }
    /// The deadline has passed: the holder acts or sets a later one.
    func deadlinePassed()
}

/// A holder's entry in a ``DeadlineWheel``.
///
/// The wheel may look at an entry as late as one round later. A holder that is done cancels its entry, so the wheel
/// does not keep a minute's worth of gone connections.
package final class DeadlineRegistration {
    fileprivate private(set) var holder: (any DeadlineHolder)?

    fileprivate init(_ holder: any DeadlineHolder) {
        self.holder = holder
    }

    /// Stops watching the holder; on the wheel's loop.
    package func cancel() {
        holder = nil
    }
}

/// Timer wheel: the deadlines of all connections on one event loop, with one timer.
///
/// A timer per connection would cost memory and a heap operation per packet. Each entry is in one bucket of a ring; at
/// each tick the loop fires, moves or drops the entries of one bucket. Deadlines fire up to one tick late, never early.
/// A deadline that moves *earlier* needs another ``add(_:)``.
///
/// If the loop stood still (a suspended process, a busy machine), bytes of the peers may wait unread. So the wheel gives the
/// loop time to read them, as long as it stood still and at most ``longestGrace``, before it fires what is overdue.
package final class DeadlineWheel {
    /// The longest time to read what came while the loop stood still.
    private static let longestGrace = TimeAmount.seconds(10)
    /// A turn that comes later than this many ticks: the loop stood still.
    private static let ticksOfStandstill: Int64 = 4

    private let eventLoop: any EventLoop
    private let tick: TimeAmount
    private var buckets: [[DeadlineRegistration]]
    private var position = 0
    private var count = 0
    private var nextTurn = NIODeadline.distantFuture
    private var turn: Scheduled<Void>?
    /// The loop has had its time to read, and the overdue turns follow.
    private var isCatchingUp = false

    /// Makes a wheel for holders on a loop; deadlines beyond a round of `bucketCount` ticks stay for further rounds.
    package init(eventLoop: any EventLoop, tick: TimeAmount = .milliseconds(250), bucketCount: Int = 256) {
        self.eventLoop = eventLoop
        self.tick = tick
        buckets = Array(repeating: [], count: max(2, bucketCount))
    }

    /// Watches a holder until its deadline is nil or it cancels its registration.
    ///
    /// Adding it twice is harmless: the deadline fires once.
    @discardableResult
    package func add(_ holder: any DeadlineHolder) -> DeadlineRegistration {
        eventLoop.preconditionInEventLoop()
        let entry = DeadlineRegistration(holder)
        guard let deadline = holder.deadline else { return entry }
        if count == 0 {
            nextTurn = eventLoop.now + tick
            schedule()
        }
        put(entry, deadline)
        return entry
    }

    private func put(_ entry: DeadlineRegistration, _ deadline: NIODeadline) {
        let wait = max(0, (deadline - nextTurn).nanoseconds)
        // Rounded up so that it never fires early; at most one round ahead, where the wheel looks at it again.
        let ticks = min(Int64(buckets.count - 1), (wait + tick.nanoseconds - 1) / tick.nanoseconds)
        buckets[(position + Int(ticks)) % buckets.count].append(entry)
        count += 1
    }

    private func schedule(at time: NIODeadline? = nil) {
        let wheel = NIOLoopBound(self, eventLoop: eventLoop)
        turn = eventLoop.assumeIsolated().scheduleTask(deadline: time ?? nextTurn) { wheel.value.turnOnce() }
    }

    private func turnOnce() {
        let late = eventLoop.now - nextTurn
        if late <= tick {
            isCatchingUp = false
        } else if late > tick * Self.ticksOfStandstill, !isCatchingUp {
            isCatchingUp = true
            return schedule(at: eventLoop.now + min(late, Self.longestGrace))
        }
        let due = buckets[position]
        buckets[position] = []
        count -= due.count
        position = (position + 1) % buckets.count
        let now = nextTurn
        nextTurn = nextTurn + tick
        for entry in due {
            guard let holder = entry.holder, let deadline = holder.deadline else { continue }
            if deadline <= now {
                holder.deadlinePassed()
                if let next = entry.holder?.deadline { put(entry, max(next, nextTurn)) }
            } else {
                put(entry, deadline)
            }
        }
        if count > 0 {
            schedule()
        } else {
            turn = nil
        }
    }
}
