import NIOCore

/// A time in which this process slept or was busy: the service's silence in it means nothing.
struct Standstill {
    /// How late a timer is that shows it.
    let duration: TimeAmount

    /// - Returns: nil if a timer that was due at `due` comes in time, within `tolerance`.
    init?(due: NIODeadline, now: NIODeadline, tolerance: TimeAmount) {
        duration = now - due
        guard duration > tolerance else { return nil }
    }

    /// The time limit of an answer, which may wait to be read; at most `limit` from now if it has passed.
    func postponed(_ overdue: NIODeadline, now: NIODeadline, limit: TimeAmount) -> NIODeadline {
        overdue <= now ? now + min(duration, limit) : overdue
    }
}
