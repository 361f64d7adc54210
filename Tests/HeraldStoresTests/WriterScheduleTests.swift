import Testing

@testable import HeraldStores

/// A schedule that expectations can change, with times in milliseconds.
private final class Schedule {
    private var schedule: WriterSchedule

    init(gapCheckpointPages: Int = 1000) {
        var configuration = SQLiteStoreConfiguration()
        configuration.gatherWindow = .milliseconds(2)
        configuration.gatherMinimum = 32
        configuration.gatherLimit = 256
        configuration.journalDelay = .milliseconds(50)
        configuration.retryInterval = .milliseconds(500)
        configuration.checkpointPages = 1000
        configuration.gapCheckpointPages = gapCheckpointPages
        configuration.checkpointIdle = .milliseconds(400)
        configuration.logPageLimit = 5000
        schedule = WriterSchedule(configuration)
    }

    func next(at time: Int, urgent: Int = 0, work: Bool? = nil, closing: Bool = false) -> WriterSchedule.Step {
        schedule.next(
            WriterSchedule.Facts(
                now: .milliseconds(time),
                urgent: urgent,
                hasWork: work ?? (urgent > 0),
                isClosing: closing
            )
        )
    }

    func committed(urgent: Int, pagesInLog: Int, at time: Int) {
        schedule.committed(urgent: urgent, pagesInLog: pagesInLog, now: .milliseconds(time))
    }

    func checkpointed(pagesInLog: Int, copied: Int) {
        schedule.checkpointed((pagesInLog, copied))
    }

    func checkpointFailed() {
        schedule.checkpointed(nil)
    }

    func became(_ health: WriterSchedule.Health, at time: Int) {
        schedule.became(health, now: .milliseconds(time))
    }
}

struct WriterScheduleTests {
    private let schedule = Schedule()

    @Test func `an idle writer sleeps until any request`() {
        #expect(schedule.next(at: 0) == .sleep(until: nil, urgent: 1, any: true))
    }

    @Test func `an idle writer commits at once`() {
        #expect(schedule.next(at: 0, urgent: 1) == .commit)
        schedule.committed(urgent: 500, pagesInLog: 10, at: 1)
        #expect(schedule.next(at: 3, urgent: 1) == .commit)
    }

    @Test func `after a large commit the writer waits a moment for three quarters as many requests`() {
        schedule.committed(urgent: 100, pagesInLog: 10, at: 10)
        #expect(schedule.next(at: 10, urgent: 3) == .sleep(until: .milliseconds(12), urgent: 75, any: false))
        #expect(schedule.next(at: 11, urgent: 75) == .commit)
        #expect(schedule.next(at: 12, urgent: 3) == .commit)
    }

    @Test func `the writer waits for no more than the limit, and not after a small commit`() {
        schedule.committed(urgent: 10_000, pagesInLog: 10, at: 10)
        #expect(schedule.next(at: 10, urgent: 255) == .sleep(until: .milliseconds(12), urgent: 256, any: false))
        #expect(schedule.next(at: 10, urgent: 256) == .commit)
        schedule.committed(urgent: 32, pagesInLog: 10, at: 20)
        #expect(schedule.next(at: 20, urgent: 1) == .sleep(until: .milliseconds(22), urgent: 24, any: false))
        schedule.committed(urgent: 31, pagesInLog: 10, at: 30)
        #expect(schedule.next(at: 30, urgent: 1) == .commit)
    }

    @Test func `events wait for a commit for a bounded time`() {
        #expect(schedule.next(at: 100, work: true) == .sleep(until: .milliseconds(150), urgent: 1, any: false))
        #expect(schedule.next(at: 149, work: true) == .sleep(until: .milliseconds(150), urgent: 1, any: false))
        #expect(schedule.next(at: 150, work: true) == .commit)
        schedule.committed(urgent: 0, pagesInLog: 0, at: 151)
        #expect(schedule.next(at: 160) == .sleep(until: nil, urgent: 1, any: true))
        #expect(schedule.next(at: 200, work: true) == .sleep(until: .milliseconds(250), urgent: 1, any: false))
    }

    @Test func `a log that has grown by a slice is checkpointed first`() {
        schedule.committed(urgent: 5, pagesInLog: 999, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
        schedule.committed(urgent: 5, pagesInLog: 1000, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 1000, copied: 1000)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
        schedule.committed(urgent: 5, pagesInLog: 20, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
    }

    @Test func `in a gap a smaller slice is checkpointed`() {
        let schedule = Schedule(gapCheckpointPages: 100)
        schedule.committed(urgent: 1, pagesInLog: 100, at: 0)
        #expect(schedule.next(at: 1, urgent: 1) == .commit)
        #expect(schedule.next(at: 1) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 100, copied: 100)
        schedule.committed(urgent: 1, pagesInLog: 99, at: 1)
        #expect(schedule.next(at: 1) == .sleep(until: .milliseconds(401), urgent: 1, any: true))
    }

    @Test func `not every checkpoint of an overfull log waits for readers`() {
        let schedule = Schedule(gapCheckpointPages: 100)
        schedule.committed(urgent: 1, pagesInLog: 5000, at: 0)
        #expect(schedule.next(at: 1) == .checkpoint(.restart))
        schedule.checkpointFailed()
        schedule.committed(urgent: 1, pagesInLog: 5999, at: 1)
        #expect(schedule.next(at: 2, urgent: 1) == .commit)
        #expect(schedule.next(at: 2) == .sleep(until: .milliseconds(401), urgent: 1, any: true))
        schedule.committed(urgent: 1, pagesInLog: 6000, at: 2)
        #expect(schedule.next(at: 2, urgent: 1) == .checkpoint(.restart))
    }

    @Test
    func `a log that cannot start over is checkpointed every slice, and beyond its limit with waiting for readers`() {
        schedule.committed(urgent: 5, pagesInLog: 1500, at: 0)
        #expect(schedule.next(at: 5) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 1500, copied: 200)
        #expect(schedule.next(at: 5) == .sleep(until: nil, urgent: 1, any: true))
        schedule.committed(urgent: 5, pagesInLog: 2400, at: 0)
        #expect(schedule.next(at: 5) == .sleep(until: .milliseconds(400), urgent: 1, any: true))
        schedule.committed(urgent: 5, pagesInLog: 2500, at: 0)
        #expect(schedule.next(at: 5) == .checkpoint(.passive))
        schedule.checkpointFailed()
        schedule.committed(urgent: 5, pagesInLog: 5100, at: 0)
        #expect(schedule.next(at: 5) == .checkpoint(.restart))
    }

    @Test func `in quiet times the rest of the log is checkpointed once`() {
        schedule.committed(urgent: 1, pagesInLog: 10, at: 100)
        #expect(schedule.next(at: 200) == .sleep(until: .milliseconds(500), urgent: 1, any: true))
        #expect(schedule.next(at: 500) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 10, copied: 10)
        #expect(schedule.next(at: 501) == .sleep(until: nil, urgent: 1, any: true))
    }

    @Test func `while writes fail, urgent requests are refused and the disk is probed periodically`() {
        schedule.became(.stalled, at: 100)
        #expect(schedule.next(at: 100, urgent: 3) == .refuse)
        #expect(schedule.next(at: 100, work: true) == .sleep(until: .milliseconds(600), urgent: 1, any: false))
        #expect(schedule.next(at: 600, urgent: 3) == .probe)
        schedule.became(.stalled, at: 600)
        #expect(schedule.next(at: 601) == .sleep(until: .milliseconds(1100), urgent: 1, any: false))
        schedule.became(.healthy, at: 1100)
        #expect(schedule.next(at: 1100, urgent: 3) == .commit)
    }

    @Test func `with little free space it commits, and checks the space periodically`() {
        schedule.became(.lowOnSpace, at: 100)
        #expect(schedule.next(at: 100, urgent: 1) == .commit)
        #expect(schedule.next(at: 101) == .sleep(until: .milliseconds(600), urgent: 1, any: true))
        #expect(schedule.next(at: 600, urgent: 1) == .probe)
    }

    @Test func `after a permanent failure it refuses everything`() {
        schedule.became(.failed, at: 0)
        #expect(schedule.next(at: 10_000, work: true) == .refuse)
        #expect(schedule.next(at: 10_000) == .sleep(until: nil, urgent: 1, any: true))
        #expect(schedule.next(at: 10_000, closing: true) == .finish)
    }

    @Test func `closing commits pending requests first`() {
        schedule.committed(urgent: 100, pagesInLog: 1, at: 10)
        #expect(schedule.next(at: 10, urgent: 1, closing: true) == .commit)
        #expect(schedule.next(at: 10, work: true, closing: true) == .commit)
        #expect(schedule.next(at: 10, closing: true) == .finish)
    }

    @Test func `closing tries a failing disk once more for what waits, and does not wait for it`() {
        schedule.became(.stalled, at: 0)
        #expect(schedule.next(at: 1000, urgent: 1, closing: true) == .refuse)
        #expect(schedule.next(at: 1000, work: true, closing: true) == .probe)
        schedule.became(.stalled, at: 1000)
        #expect(schedule.next(at: 2000, work: true, closing: true) == .finish)
    }

    @Test func `closing a failing disk without anything that waits finishes at once`() {
        schedule.became(.stalled, at: 0)
        #expect(schedule.next(at: 1000, closing: true) == .finish)
    }
}
