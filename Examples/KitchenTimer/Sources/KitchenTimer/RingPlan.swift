import HeraldJSON
import HeraldPhone

/// The changes that bring a device's pending notifications up to the state of the timers.
///
/// Each running timer has one local notification. The device shows it on time, also while the app or the network is away.
struct RingPlan: Hashable, Sendable {
    /// A notification to schedule, in place of the one with its identifier.
    struct Ring: Hashable, Sendable {
        /// The timer's identifier.
        var id: String
        /// The seconds from now.
        var after: Double
        /// The payload.
        var payload: JSON
    }

    /// The notifications to schedule.
    private(set) var rings: [Ring] = []
    /// The pending notifications to cancel.
    private(set) var cancelled: [String] = []

    /// Compares the timers with the pending notifications, which are payloads by identifier.
    init(_ book: TimerBook, pending: [String: JSON], now: Double) {
        let running = book.running(at: now)
        for (index, timer) in running.enumerated() {
            let payload = Self.payload(timer, others: running.count - index - 1)
            guard pending[timer.id] != payload else { continue }
            rings.append(Ring(id: timer.id, after: timer.ends - now, payload: payload))
        }
        // A timer that rings at this moment stays.
        let kept = Set(book.timers.filter { !$0.isStopped }.map(\.id))
        cancelled = pending.keys.filter { !kept.contains($0) }.sorted()
    }

    /// The notification of a timer: its texts are in the app's bundle, and its buttons in the category.
    private static func payload(_ timer: CountdownTimer, others: Int) -> JSON {
        let alert: JSON.Object = [
            "title-loc-key": .string("TIMER_TITLE"), "loc-key": .string("TIMER_ENDED"),
            "loc-args": .array([.string(timer.name)]),
        ]
        let aps: JSON.Object = [
            "alert": .object(alert), "badge": .number(JSON.Number(others)), "sound": .string("default"),
            "category": .string(KitchenApp.category), "interruption-level": .string("time-sensitive"),
        ]
        let ends = JSON.Number(timer.ends).map { JSON.number($0) } ?? .null
        return .object(["aps": .object(aps), "ends": ends, "timer": .string(timer.id)])
    }
}
