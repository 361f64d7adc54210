import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// The log, the warning and the releases of a service whose machine's clock jumps.
@Suite struct ClockWatchTests {
    private final class Records: ClockStore {
        let last = Mutex<ClockGuard.Record?>(nil)

        func clockRecord() async throws -> ClockGuard.Record? { last.withLock { $0 } }
        func setClockRecord(_ record: ClockGuard.Record) async throws { last.withLock { $0 = record } }
    }

    /// The clocks of a machine that runs.
    private final class Machine: Sendable {
        let reading: Mutex<ClockGuard.Reading>

        init(_ wall: WallTime) {
            reading = Mutex(ClockGuard.Reading(wall: wall, uptime: .seconds(500), boot: 7))
        }

        /// Time passes.
        func run(for time: Duration) {
            reading.withLock { reading in
                reading.uptime += time
                reading.wall = reading.wall + time
            }
        }

        func jump(by time: Duration) { reading.withLock { $0.wall = $0.wall + time } }
        func set(_ wall: WallTime) { reading.withLock { $0.wall = wall } }
    }

    private static let start = WallTime(seconds: 1_800_000_000)
    private let day = Duration.seconds(86_400)
    private let records = Records()
    private let notes = LogNotes()
    private let releases = Counter()

    private final class Counter: Sendable {
        let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
    }

    private func makeWatch(_ machine: Machine) -> ClockWatch {
        let clock = ServiceClock { machine.reading.withLock { $0 } }
        return ClockWatch(clock: clock, store: records, logger: notes.logger) { [releases] in
            releases.value.withLock { $0 += 1 }
        }
    }

    private func logged(_ words: String) -> Int { notes.all.filter { $0.hasPrefix(words) }.count }

    @Test func `a jump is logged once, and after 24 hours an error says that notifications are deleted`() {
        let machine = Machine(Self.start)
        let watch = makeWatch(machine)
        watch.look()
        #expect(notes.all.isEmpty && watch.warning == nil)
        machine.jump(by: day * 2)
        for _ in 0..<24 {
            watch.look()
            machine.run(for: .seconds(3599))
        }
        #expect(logged("the machine's clock has jumped: Herald withholds notifications that look expired") == 1)
        #expect(watch.warning?.contains("jumped by +2d: Herald withholds notifications that look expired") == true)
        #expect(watch.warning?.contains("`herald clock accept`") == true)
        #expect(notes.all.count == 1 && releases.count == 0)
        machine.run(for: .seconds(24))
        watch.look()
        #expect(logged("the clock has not returned for a day: Herald deletes withheld notifications now") == 1)
        #expect(notes.all.count == 2 && releases.count == 1 && watch.warning == nil)
    }

    @Test func `a jump back while running is logged and reported, and so is its end`() {
        let machine = Machine(Self.start)
        let watch = makeWatch(machine)
        machine.jump(by: .zero - day * 2)
        watch.look()
        watch.look()
        #expect(notes.all.count == 1 && logged("the machine's clock has jumped") == 1)
        #expect(notes.all.first?.contains("by=-2d") == true)
        #expect(watch.warning?.contains("jumped by -2d") == true)
        machine.jump(by: day * 2)
        watch.look()
        #expect(notes.all.last == "the machine's clock is right again: Herald withholds nothing")
        #expect(releases.count == 1 && watch.warning == nil)
    }

    @Test func `a jump that becomes smaller releases notifications that no longer look expired`() {
        let machine = Machine(Self.start)
        let watch = makeWatch(machine)
        machine.jump(by: day * 30)
        watch.look()
        machine.jump(by: day)
        watch.look()
        #expect(releases.count == 0)
        machine.jump(by: .zero - day * 20)
        watch.look()
        #expect(releases.count == 1 && notes.all.count == 1)
        machine.jump(by: .zero - day * 20)
        watch.look()
        #expect(releases.count == 2 && notes.all.count == 1)
    }

    @Test func `an accepted clock is recorded`() async {
        let machine = Machine(Self.start)
        let watch = makeWatch(machine)
        machine.jump(by: day * 2)
        watch.look()
        await watch.accept()
        #expect(notes.all.last == "the operator accepted the clock: Herald withholds nothing")
        #expect(releases.count == 1 && records.last.withLock { $0?.certain.wall } == Self.start + day * 2)
    }

    @Test func `a clock that was never set is reported, and setting it is not a jump`() async {
        let machine = Machine(WallTime(seconds: 500))
        let watch = makeWatch(machine)
        watch.look()
        machine.run(for: day * 2)
        await watch.accept()
        #expect(logged("the machine's clock is not set: no notification expires until it is") == 1)
        #expect(watch.warning?.hasPrefix("the machine's clock is not set") == true)
        #expect(notes.all.count == 1 && records.last.withLock { $0 } == nil, "1970 is not recorded")
        machine.set(Self.start)
        watch.look()
        #expect(logged("the machine's clock is set") == 1 && notes.all.count == 2)
        #expect(releases.count == 1 && watch.warning == nil)
    }
}
