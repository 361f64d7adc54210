import HeraldMailbox
import HeraldModel
import Synchronization
import Testing

/// Jumps of the machine's clock.
struct ClockGuardTests {
    private let hour = Duration.seconds(3600)
    private let day = Duration.seconds(86_400)

    /// A guard on a machine.
    private struct Machine {
        static let start = ClockGuard.Reading(wall: WallTime(seconds: 1_800_000_000), uptime: .seconds(500), boot: 7)

        var guarded = ClockGuard(now: Machine.start)

        /// The machine's clocks, some time after the start, with the wall clock moved.
        static func reading(after time: Duration, jump: Duration = .zero) -> ClockGuard.Reading {
            ClockGuard.Reading(wall: start.wall + time + jump, uptime: start.uptime + time, boot: start.boot)
        }

        mutating func look(after time: Duration, jump: Duration = .zero) -> ClockGuard.State {
            guarded.observe(Machine.reading(after: time, jump: jump))
            return guarded.state
        }

        /// The certain time since the start.
        var certain: Duration { guarded.certainTime - Machine.start.wall }

        /// The guard of the next run.
        func restarted(after time: Duration, jump: Duration = .zero, boot: Int64 = 7) -> ClockGuard {
            var now = Machine.reading(after: time, jump: jump)
            now.boot = boot
            if boot != 7 { now.uptime = .seconds(20) }
            return ClockGuard(guarded.record, now: now)
        }
    }

    /// Clocks that a test sets.
    private final class Clocks: Sendable {
        let reading = Mutex(Machine.start)
    }

    @Test func `a clock that runs is trusted, also over a suspension and with small corrections`() {
        var machine = Machine()
        #expect(machine.look(after: .seconds(30)) == .trusted)
        #expect(machine.look(after: day * 3) == .trusted)
        #expect(machine.look(after: day * 4, jump: .seconds(3600)) == .trusted)
        #expect(machine.look(after: day * 5, jump: .seconds(7200)) == .trusted)
        #expect(machine.certain == day * 5 + .seconds(7200))
    }

    @Test(arguments: [7, 8] as [Int64]) func `another jump while the service is stopped has its own day`(boot: Int64) {
        var machine = Machine()
        _ = machine.look(after: .seconds(30), jump: day * 3)
        _ = machine.look(after: hour * 23, jump: day * 3)
        #expect(machine.guarded.record?.withheld == hour * 23 - .seconds(30))
        #expect(
            machine.restarted(after: hour * 23, jump: day * 3, boot: boot).record?.withheld == hour * 23 - .seconds(30)
        )
        #expect(machine.restarted(after: hour * 23, jump: day * 365, boot: boot).record?.withheld == .zero)
    }

    @Test func `after a jump ahead, the certain time goes on as if there had been none`() {
        var machine = Machine()
        #expect(machine.look(after: .seconds(30), jump: day * 365) == .jumped(by: day * 365))
        #expect(machine.certain == .seconds(30))
        #expect(machine.look(after: .seconds(90), jump: day * 365) == .jumped(by: day * 365))
        #expect(machine.certain == .seconds(90))
        #expect(machine.guarded.ending == nil)
    }

    @Test func `after a jump back, the certain time is the wall clock's`() {
        var machine = Machine()
        #expect(machine.look(after: .seconds(30), jump: .zero - day) == .jumped(by: .zero - day))
        #expect(machine.certain == .seconds(30) - day)
    }

    @Test(arguments: [1, -1]) func `a clock that returns is trusted`(sign: Int) {
        var machine = Machine()
        _ = machine.look(after: .seconds(30), jump: day * sign)
        #expect(machine.look(after: .seconds(60), jump: .seconds(900)) == .trusted)
        #expect(machine.guarded.ending == .returned && machine.certain == .seconds(960))
    }

    @Test func `an operator accepts the clock`() {
        var machine = Machine()
        _ = machine.look(after: .seconds(30), jump: day)
        machine.guarded.accept(Machine.reading(after: .seconds(40), jump: day))
        #expect(machine.guarded.state == .trusted && machine.guarded.ending == .accepted)
        #expect(machine.look(after: .seconds(50), jump: day) == .trusted)
        #expect(machine.certain == day + .seconds(50))
    }

    @Test func `after a day of running the clock is believed, and another jump begins another day`() {
        var machine = Machine()
        let jump = day * 10
        _ = machine.look(after: .zero, jump: jump)
        #expect(machine.look(after: hour * 23, jump: jump) == .jumped(by: jump))
        #expect(machine.look(after: hour * 23, jump: jump * 2) == .jumped(by: jump * 2))
        #expect(machine.look(after: hour * 46, jump: jump * 2) == .jumped(by: jump * 2))
        #expect(machine.look(after: hour * 47, jump: jump * 2) == .trusted)
        #expect(machine.guarded.ending == .believed && machine.certain == hour * 47 + jump * 2)
    }

    // MARK: - Between stop and start

    @Test func `a stop of days is not a jump while the machine runs on`() {
        let machine = Machine()
        let next = machine.restarted(after: day * 3)
        #expect(next.state == .trusted && next.certainTime == Machine.start.wall + day * 3)
    }

    @Test(arguments: [1, -1]) func `a jump during a stop is found while the machine runs on`(sign: Int) {
        let machine = Machine()
        #expect(machine.restarted(after: day * 3, jump: day * sign).state == .jumped(by: day * sign))
    }

    @Test func `a long stop over a start of the machine cannot be told from a jump ahead`() {
        let machine = Machine()
        var next = machine.restarted(after: day * 3, boot: 8)
        #expect(next.state == .unverified(stop: day * 3))
        #expect(next.certainTime == Machine.start.wall)
        // The next run knows as little.
        let third = ClockGuard(next.record, now: Machine.reading(after: day * 3 + .seconds(60)))
        #expect(third.state == .unverified(stop: day * 3 + .seconds(60)))
        var later = ClockGuard.Reading(wall: Machine.start.wall + day * 4, uptime: .seconds(20) + day, boot: 8)
        next.observe(later)
        #expect(next.state == .trusted && next.ending == .believed)
        later.wall = later.wall + .seconds(60)
        later.uptime += .seconds(60)
        next.observe(later)
        #expect(next.certainTime == later.wall)
    }

    @Test func `a short stop over a start of the machine is trusted, and a clock before the last run's is not`() {
        let machine = Machine()
        #expect(machine.restarted(after: .seconds(600), boot: 8).state == .trusted)
        let back = machine.restarted(after: .zero, jump: .zero - day, boot: 8)
        #expect(back.state == .jumped(by: .zero - day))
        #expect(machine.restarted(after: .seconds(600), boot: 0).state == .trusted)
    }

    @Test func `the day of withholding goes on in the next run`() {
        var machine = Machine()
        _ = machine.look(after: .zero, jump: day)
        _ = machine.look(after: hour * 20, jump: day)
        var next = machine.restarted(after: hour * 30, jump: day)
        #expect(next.state == .jumped(by: day))
        #expect(next.certainTime == Machine.start.wall + hour * 30)
        next.observe(Machine.reading(after: hour * 33, jump: day))
        #expect(next.state == .jumped(by: day))
        next.observe(Machine.reading(after: hour * 34, jump: day))
        #expect(next.state == .trusted)
    }

    // MARK: - A clock that was never set

    /// A machine without a battery clock some time after its start.
    private func unset(after time: Duration = .zero, boot: Int64 = 8) -> ClockGuard.Reading {
        ClockGuard.Reading(wall: WallTime(seconds: 20) + time, uptime: .seconds(20) + time, boot: boot)
    }

    @Test func `a first start before 2020 waits for the clock, however long it takes`() {
        var guarded = ClockGuard(now: unset())
        #expect(guarded.state == .unset && guarded.record == nil)
        for hours in [1, 24, 25, 800] {
            guarded.observe(unset(after: hour * hours))
            #expect(guarded.state == .unset && guarded.certainTime == WallTime(seconds: 20) + hour * hours)
            guarded.accept(unset(after: hour * hours))
            #expect(guarded.state == .unset && guarded.record == nil, "nobody can accept such a clock")
        }
        var set = unset(after: hour * 801)
        set.wall = Machine.start.wall
        guarded.observe(set)
        #expect(guarded.state == .trusted && guarded.certainTime == Machine.start.wall)
        #expect(guarded.record == ClockGuard.Record(certain: set))
    }

    @Test(
        arguments: [(600, .trusted), (259_200, .unverified(stop: .seconds(259_200)))] as [(Int, ClockGuard.State)]
    )
    func `a clock that is set after a start is judged as at that start`(stop: Int, state: ClockGuard.State) {
        let machine = Machine()
        var guarded = ClockGuard(machine.guarded.record, now: unset())
        #expect(guarded.state == .unset)
        guarded.observe(unset(after: day * 2))
        #expect(guarded.state == .unset && guarded.record?.certain.wall == Machine.start.wall + day * 2)
        var set = unset(after: day * 2)
        set.wall = Machine.start.wall + day * 2 + .seconds(stop)
        guarded.observe(set)
        #expect(guarded.state == state)
        #expect(guarded.certainTime == (state == .trusted ? set.wall : Machine.start.wall + day * 2))
        set.wall = set.wall + day
        set.uptime += day
        guarded.observe(set)
        #expect(guarded.state == .trusted, "a stop is believed after a day of a clock that is set")
    }

    @Test func `a clock that is unset for a while during a jump ends neither the jump nor its day`() {
        var machine = Machine()
        let back = WallTime(seconds: 100) - Machine.start.wall
        _ = machine.look(after: .zero, jump: day)
        _ = machine.look(after: hour * 20, jump: day)
        #expect(machine.look(after: hour * 21, jump: back) == .unset)
        #expect(machine.look(after: hour * 50, jump: back) == .unset)
        #expect(machine.restarted(after: hour * 51, jump: back).state == .unset)
        #expect(machine.look(after: hour * 50, jump: day) == .jumped(by: day))
        #expect(machine.look(after: hour * 53, jump: day) == .jumped(by: day))
        #expect(machine.look(after: hour * 54, jump: day) == .trusted)
        #expect(machine.look(after: hour * 55, jump: back) == .unset)
        #expect(machine.look(after: hour * 56, jump: day) == .trusted && machine.guarded.ending == .returned)
    }

    @Test func `a record from before 2020 is ignored`() {
        let record = ClockGuard.Record(certain: unset())
        #expect(ClockGuard(record, now: Machine.start).state == .trusted)
    }

    @Test func `moving the service's own clock is not a jump`() {
        let clocks = Clocks()
        let clock = ServiceClock(isAdjustable: true) { clocks.reading.withLock { $0 } }
        #expect(clock.advance(by: day * 30))
        #expect(clock.guardState == .trusted && clock.certainTime() == Machine.start.wall + day * 30)
        clocks.reading.withLock { $0 = Machine.reading(after: .zero, jump: day) }
        #expect(clock.guardState == .jumped(by: day))
        #expect(clock.certainTime() == Machine.start.wall + day * 30)
        clock.accept()
        #expect(clock.certainTime() == Machine.start.wall + day * 31)
    }

    @Test func `the machine's clocks are read`() {
        let (first, second) = (ServiceClock.machineReading(), ServiceClock.machineReading())
        #expect(first.boot == second.boot && first.uptime <= second.uptime && first.uptime > .zero)
        #expect(ServiceClock().certainTime() >= first.wall)
    }
}
