package import HeraldModel

/// Decides up to which moment expiry is certain, by comparing the wall clock with the time that has really passed.
///
/// After a jump, the certain time goes on from the last trusted moment as if there had been none. It never is later than
/// the wall clock. The jump ends when the wall clock returns, when an operator accepts it, or after ``patience``.
///
/// A wall clock before ``earliest`` was never set. It tells nothing: it is not a jump, and is not believed however long it
/// stays. Once it is set, it is judged as at a start.
package struct ClockGuard: Sendable {
    /// The deviation that is not yet a jump: slow corrections, and the time between two readings.
    package static let tolerance: Duration = .seconds(3600)
    /// The running time after which the clock is believed.
    package static let patience: Duration = .seconds(86_400)
    /// The 1st of January 2020.
    ///
    /// An earlier wall clock has not been set since the start of a machine without a battery clock.
    package static let earliest = WallTime(seconds: 1_577_836_800)
    /// A time for which machines are often off.
    private static let longStop: Duration = .seconds(7 * 86_400)

    /// A look at the machine's clocks.
    package struct Reading: Hashable, Sendable {
        package var wall: WallTime
        /// Time since the machine's boot, with the time that it was suspended.
        package var uptime: Duration
        /// Identifies the boot; 0 if it is unknown.
        package var boot: Int64

        package init(wall: WallTime, uptime: Duration, boot: Int64) {
            self.wall = wall
            self.uptime = uptime
            self.boot = boot
        }
    }

    /// The last trusted time as a later run of the service needs it.
    package struct Record: Hashable, Sendable {
        /// The certain time; `wall` is not the wall clock's after a jump.
        package var certain: Reading
        /// The running time since the jump; zero without one.
        package var withheld: Duration
        /// The size of the jump; zero without one.
        package var deviation: Duration

        package init(certain: Reading, withheld: Duration = .zero, deviation: Duration = .zero) {
            self.certain = certain
            self.withheld = withheld
            self.deviation = deviation
        }
    }

    package enum State: Hashable, Sendable {
        case trusted
        /// The wall clock deviates by this much from the time that passed; negative if it was set back.
        case jumped(by: Duration)
        /// The machine was started since the last run. It was off for this long, or its clock is wrong.
        case unverified(stop: Duration)
        /// The wall clock is before ``ClockGuard/earliest``: nothing expires.
        case unset
    }

    /// The end of the last jump.
    package enum Ending: Hashable, Sendable {
        case returned
        case accepted
        /// ``patience`` is over.
        case believed
    }

    package private(set) var state = State.trusted
    package private(set) var ending: Ending?
    /// The last trusted wall time, and the uptime at that moment; nil until the wall clock is set for the first time.
    private var trusted: (wall: WallTime, uptime: Duration)?
    /// Whether the uptime tells how much time has passed since: it does not over a start of the machine.
    private var isMeasured = true
    private var deviation = Duration.zero
    private var withheld = Duration.zero
    /// The change of the deviation beyond which it is another jump.
    private var margin = ClockGuard.tolerance
    private var latest: Reading

    /// `record` is the last run's; nil if there was none.
    package init(_ record: Record? = nil, now: Reading) {
        latest = now
        if let record, record.certain.wall >= Self.earliest {
            let last = record.certain
            isMeasured = last.boot != 0 && last.boot == now.boot && last.uptime <= now.uptime
            trusted = (last.wall, isMeasured ? last.uptime : now.uptime)
            deviation = record.deviation
            withheld = record.withheld
            // A stop of the machine explains a week more.
            margin = isMeasured ? Self.tolerance : Self.longStop
        }
        observe(now)
    }

    /// The moment up to which expiry is certain at the last reading.
    package var certainTime: WallTime {
        guard state != .trusted, let expected else { return latest.wall }
        return min(latest.wall, expected)
    }

    /// The record for the next run; nil while the wall clock was never set.
    package var record: Record? {
        guard state != .trusted else { return Record(certain: latest) }
        guard let expected else { return nil }
        let boot = isMeasured ? latest.boot : 0
        return Record(
            certain: Reading(wall: expected, uptime: latest.uptime, boot: boot),
            withheld: withheld,
            deviation: deviation
        )
    }

    /// The wall time without a jump.
    private var expected: WallTime? { trusted.map { $0.wall + (latest.uptime - $0.uptime) } }

    /// Judges the clocks.
    package mutating func observe(_ now: Reading) {
        let passed = state == .unset ? .zero : max(.zero, now.uptime - latest.uptime)
        latest = now
        guard now.wall >= Self.earliest else {
            state = .unset
            return
        }
        guard let expected else { return trust(ending: .returned) }
        let deviation = now.wall - expected
        guard abs(deviation) > Self.tolerance else { return trust(ending: .returned) }
        // Another jump has its own time.
        withheld = abs(deviation - self.deviation) > margin ? .zero : withheld + passed
        margin = Self.tolerance
        self.deviation = deviation
        state = isMeasured || deviation < .zero ? .jumped(by: deviation) : .unverified(stop: deviation)
        if withheld >= Self.patience { trust(ending: .believed) }
    }

    /// Accepts the wall clock as it is, unless it was never set.
    package mutating func accept(_ now: Reading) {
        guard now.wall >= Self.earliest else { return observe(now) }
        latest = now
        trust(ending: .accepted)
    }

    private mutating func trust(ending: Ending) {
        if state != .trusted { self.ending = ending }
        state = .trusted
        trusted = (latest.wall, latest.uptime)
        isMeasured = true
        withheld = .zero
        deviation = .zero
        margin = Self.tolerance
    }
}

private func abs(_ duration: Duration) -> Duration { duration < .zero ? .zero - duration : duration }

/// Keeps the certain time for the next run.
package protocol ClockStore: Sendable {
    func clockRecord() async throws -> ClockGuard.Record?
    func setClockRecord(_ record: ClockGuard.Record) async throws
}
