package import NIOCore

/// Something with a moment by which it must have acted: a connection, usually.
package protocol DeadlineHolder: AnyObject {
    /// The next moment at which ``deadlinePassed()`` is due; nil when there is none any more. Moving it later costs
    /// nothing: the wheel looks when the earlier moment comes.
    var deadline: NIODeadline? { get }
    /// The deadline is over. The holder acts, or sets a later one.
    func deadlinePassed()
}

/// A holder's place in a ``DeadlineWheel``.
///
/// The wheel may look at it as late as a whole round later. A holder that is done leaves it, so that nothing of it stays
/// until then: services with much coming and going would keep a minute's worth of gone connections.
package final class DeadlinePlace {
    fileprivate private(set) var holder: (any DeadlineHolder)?

    fileprivate init(_ holder: any DeadlineHolder) {
        self.holder = holder
    }

    /// The holder is watched no more; on the wheel's loop.
    package func leave() {
        holder = nil
    }
}

/// The deadlines of all connections on one event loop, in one timer.
///
/// A timer for each connection costs memory and a heap operation with each packet. Here a holder is in one bucket of a
/// ring; the loop looks into one bucket per tick and fires, moves or drops what it finds. Deadlines are late by one tick
/// at the most and never early. A deadline that becomes *earlier* than the one known needs another ``add(_:)``.
package final class DeadlineWheel {
    private let eventLoop: any EventLoop
    private let tick: TimeAmount
    private var buckets: [[DeadlinePlace]]
    private var position = 0
    private var count = 0
    private var nextTurn = NIODeadline.distantFuture
    private var turn: Scheduled<Void>?

    /// - Parameters:
    ///   - eventLoop: The loop on which everything here happens.
    ///   - tick: How exact the wheel is.
    ///   - bucketCount: How many ticks it covers; later deadlines go round again.
    package init(eventLoop: any EventLoop, tick: TimeAmount = .milliseconds(250), bucketCount: Int = 256) {
        self.eventLoop = eventLoop
        self.tick = tick
        buckets = Array(repeating: [], count: max(2, bucketCount))
    }

    /// Watches a holder until its deadline is nil, or it leaves its place.
    ///
    /// Holding it twice is harmless: the deadline fires once.
    @discardableResult
    package func add(_ holder: any DeadlineHolder) -> DeadlinePlace {
        eventLoop.preconditionInEventLoop()
        let place = DeadlinePlace(holder)
        guard let deadline = holder.deadline else { return place }
        if count == 0 {
            nextTurn = eventLoop.now + tick
            schedule()
        }
        put(place, deadline)
        return place
    }

    private func put(_ place: DeadlinePlace, _ deadline: NIODeadline) {
        let wait = max(0, (deadline - nextTurn).nanoseconds)
        // Rounded up, so that it never fires early; at most one round ahead, where it is looked at again.
        let ticks = min(Int64(buckets.count - 1), (wait + tick.nanoseconds - 1) / tick.nanoseconds)
        buckets[(position + Int(ticks)) % buckets.count].append(place)
        count += 1
    }

    private func schedule() {
        let wheel = NIOLoopBound(self, eventLoop: eventLoop)
        turn = eventLoop.assumeIsolated().scheduleTask(deadline: nextTurn) { wheel.value.turnOnce() }
    }

    private func turnOnce() {
        let due = buckets[position]
        buckets[position] = []
        count -= due.count
        position = (position + 1) % buckets.count
        let now = nextTurn
        nextTurn = nextTurn + tick
        for place in due {
            guard let holder = place.holder, let deadline = holder.deadline else { continue }
            if deadline <= now {
                holder.deadlinePassed()
                if let next = place.holder?.deadline { put(place, max(next, nextTurn)) }
            } else {
                put(place, deadline)
            }
        }
        if count > 0 {
            schedule()
        } else {
            turn = nil
        }
    }
}
