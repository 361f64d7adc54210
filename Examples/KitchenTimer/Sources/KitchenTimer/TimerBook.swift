/// The timers of the family: on each device, and on the family's server.
///
/// Each side may change its copy without the others. ``merge(_:now:)`` brings two copies together.
struct TimerBook: Codable, Hashable, Sendable {
    /// The timers, the next one first.
    private(set) var timers: [CountdownTimer] = []

    /// The timers that still have to ring.
    func running(at now: Double) -> [CountdownTimer] {
        timers.filter { $0.runs(at: now) }
    }

    /// Starts a timer.
    /// - Throws: ``KitchenRefusal`` if the name or the time is not possible, or there are too many timers.
    mutating func start(_ name: String, seconds: Double, id: String, now: Double) throws {
        let name = name.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        try CountdownTimer.check(name: name)
        guard (1...KitchenLimits.seconds).contains(seconds) else {
            throw KitchenRefusal("\"seconds\" must be a number from 1 to \(Int(KitchenLimits.seconds))")
        }
        prune(now)
        guard timers.count < KitchenLimits.timers else {
            throw KitchenRefusal("there are already \(KitchenLimits.timers) timers of today")
        }
        put(CountdownTimer(id: id, name: name, ends: (now + seconds).rounded()))
    }

    /// Stops a timer, also one that has rung.
    /// - Throws: ``KitchenRefusal`` if there is no such timer.
    mutating func stop(_ id: String) throws {
        var timer = try timer(id)
        timer.isStopped = true
        timer.revise()
        put(timer)
    }

    /// Lets a timer ring later: five minutes after its end, or from now on if it has rung.
    /// - Throws: ``KitchenRefusal`` if there is no such timer.
    mutating func prolong(_ id: String, now: Double) throws {
        var timer = try timer(id)
        timer.ends = (max(timer.ends, now) + KitchenLimits.moreSeconds).rounded()
        timer.isStopped = false
        timer.revise()
        put(timer)
    }

    /// Takes over the timers of another copy where they are newer; leaves out those that no app makes.
    /// - Returns: Whether a timer has changed.
    mutating func merge(_ others: [CountdownTimer], now: Double) -> Bool {
        let before = timers
        for other in others where (try? other.check()) != nil {
            if let mine = timers.first(where: { $0.id == other.id }), !other.wins(over: mine) { continue }
            put(other)
        }
        prune(now)
        return timers != before
    }

    private mutating func prune(_ now: Double) {
        timers.removeAll { $0.ends + KitchenLimits.keptSeconds < now || $0.ends - now > 2 * KitchenLimits.seconds }
        // The last ones to ring, because every copy drops the same.
        if timers.count > KitchenLimits.timers { timers.removeLast(timers.count - KitchenLimits.timers) }
    }

    private mutating func put(_ timer: CountdownTimer) {
        timers.removeAll { $0.id == timer.id }
        timers.append(timer)
        timers.sort { ($0.ends, $0.id) < ($1.ends, $1.id) }
    }

    private func timer(_ id: String) throws -> CountdownTimer {
        guard let timer = timers.first(where: { $0.id == id }) else {
            throw KitchenRefusal("there is no timer \(id.prefix(64))")
        }
        return timer
    }
}
