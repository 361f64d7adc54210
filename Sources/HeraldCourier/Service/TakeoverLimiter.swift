import HeraldModel

/// Slows down two copies of one certificate that evict each other.
///
/// Each copy reconnects when the other has evicted it, so that without a limit both do nothing else, and the device gets
/// its notifications now here, now there. Past the limit the newer connection is refused until a minute after the first
/// of those takeovers; the older one stays, so one of the two works.
struct TakeoverLimiter {
    enum Decision: Hashable {
        case permitted
        /// Refused; the operator is told once for each such minute.
        case refused(isFirst: Bool)
    }

    private struct Minute {
        let began: ContinuousClock.Instant
        var takeovers: Int
        var hasReported = false
    }

    private var minutes: [DeviceID: Minute] = [:]
    private var nextCleaning: ContinuousClock.Instant?
    private let limit: Int

    /// - Parameter limit: Takeovers of one device within a minute.
    init(limit: Int) {
        self.limit = limit
    }

    /// A device that is connected connects again.
    mutating func takesOver(_ device: DeviceID, now: ContinuousClock.Instant) -> Decision {
        clean(now)
        guard var minute = minutes[device], minute.began.duration(to: now) < .seconds(60) else {
            minutes[device] = Minute(began: now, takeovers: 1)
            return .permitted
        }
        defer { minutes[device] = minute }
        guard minute.takeovers >= limit else {
            minute.takeovers += 1
            return .permitted
        }
        defer { minute.hasReported = true }
        return .refused(isFirst: !minute.hasReported)
    }

    /// Forgets the minutes that are over; once a minute, so that a table never holds more than two minutes' devices.
    private mutating func clean(_ now: ContinuousClock.Instant) {
        guard let due = nextCleaning else {
            nextCleaning = now + .seconds(60)
            return
        }
        guard now >= due else { return }
        minutes = minutes.filter { $0.value.began.duration(to: now) < .seconds(60) }
        nextCleaning = now + .seconds(60)
    }
}
