import Testing

@testable import HeraldStores

/// A schedule in a place where expectations can change it, told the time in milliseconds.
private final class Schedule {
    private var schedule: WriterSchedule

    init(gapCheckpointPages: Int = 1000) {
        var configuration = SQLiteStoreConfiguration()
        configuration.gatherWindow = .milliseconds(2)
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

    @Test func `an idle writer sleeps until anything comes`() {
        #expect(schedule.next(at: 0) == .sleep(until: nil, urgent: 1, any: true))
    }

    @Test func `an idle writer commits at once`() {
        #expect(schedule.next(at: 0, urgent: 1) == .commit)
        schedule.committed(urgent: 500, pagesInLog: 10, at: 1)
        #expect(schedule.next(at: 3, urgent: 1) == .commit)
    }

    @Test func `after a large commit it waits a moment for half as many`() {
        schedule.committed(urgent: 100, pagesInLog: 10, at: 10)
        #expect(schedule.next(at: 10, urgent: 3) == .sleep(until: .milliseconds(12), urgent: 50, any: false))
        #expect(schedule.next(at: 11, urgent: 50) == .commit)
        #expect(schedule.next(at: 12, urgent: 3) == .commit)
    }

    @Test func `it waits for no more than the limit, and after a small commit for none`() {
        schedule.committed(urgent: 10_000, pagesInLog: 10, at: 10)
        #expect(schedule.next(at: 10, urgent: 255) == .sleep(until: .milliseconds(12), urgent: 256, any: false))
        #expect(schedule.next(at: 10, urgent: 256) == .commit)
        schedule.committed(urgent: 2, pagesInLog: 10, at: 20)
        #expect(schedule.next(at: 20, urgent: 1) == .commit)
    }

    @Test func `lines wait for a commit, but not for long`() {
        #expect(schedule.next(at: 100, work: true) == .sleep(until: .milliseconds(150), urgent: 1, any: false))
        #expect(schedule.next(at: 149, work: true) == .sleep(until: .milliseconds(150), urgent: 1, any: false))
        #expect(schedule.next(at: 150, work: true) == .commit)
        schedule.committed(urgent: 0, pagesInLog: 0, at: 151)
        #expect(schedule.next(at: 160) == .sleep(until: nil, urgent: 1, any: true))
        #expect(schedule.next(at: 200, work: true) == .sleep(until: .milliseconds(250), urgent: 1, any: false))
    }

    @Test func `a log that has grown by a slice is copied before anything else`() {
        schedule.committed(urgent: 5, pagesInLog: 999, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
        schedule.committed(urgent: 5, pagesInLog: 1000, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 1000, copied: 1000)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
        schedule.committed(urgent: 5, pagesInLog: 20, at: 0)
        #expect(schedule.next(at: 5, urgent: 5) == .commit)
    }

    @Test func `while nobody waits less is copied, so that whoever comes meanwhile waits for less`() {
        let schedule = Schedule(gapCheckpointPages: 100)
        schedule.committed(urgent: 1, pagesInLog: 100, at: 0)
        #expect(schedule.next(at: 1, urgent: 1) == .commit)
        #expect(schedule.next(at: 1) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 100, copied: 100)
        schedule.committed(urgent: 1, pagesInLog: 99, at: 1)
        #expect(schedule.next(at: 1) == .sleep(until: .milliseconds(401), urgent: 1, any: true))
    }

    @Test func `readers of an overfull log are not waited for with every slice`() {
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

    @Test func `a log that cannot start over is copied every slice, and beyond its limit readers are waited for`() {
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

    @Test func `in quiet times the rest of the log is copied, once`() {
        schedule.committed(urgent: 1, pagesInLog: 10, at: 100)
        #expect(schedule.next(at: 200) == .sleep(until: .milliseconds(500), urgent: 1, any: true))
        #expect(schedule.next(at: 500) == .checkpoint(.passive))
        schedule.checkpointed(pagesInLog: 10, copied: 10)
        #expect(schedule.next(at: 501) == .sleep(until: nil, urgent: 1, any: true))
    }

    @Test func `while the disk fails all who wait are refused, and it is tried again from time to time`() {
        schedule.became(.stalled, at: 100)
        #expect(schedule.next(at: 100, urgent: 3) == .refuse)
        #expect(schedule.next(at: 100, work: true) == .sleep(until: .milliseconds(600), urgent: 1, any: false))
        #expect(schedule.next(at: 600, urgent: 3) == .probe)
        schedule.became(.stalled, at: 600)
        #expect(schedule.next(at: 601) == .sleep(until: .milliseconds(1100), urgent: 1, any: false))
        schedule.became(.well, at: 1100)
        #expect(schedule.next(at: 1100, urgent: 3) == .commit)
    }

    @Test func `short of space it works, and looks for space from time to time`() {
        schedule.became(.lowOnSpace, at: 100)
        #expect(schedule.next(at: 100, urgent: 1) == .commit)
        #expect(schedule.next(at: 101) == .sleep(until: .milliseconds(600), urgent: 1, any: true))
        #expect(schedule.next(at: 600, urgent: 1) == .probe)
    }

    @Test func `once it has failed it refuses everything, for ever`() {
        schedule.became(.failed, at: 0)
        #expect(schedule.next(at: 10_000, work: true) == .refuse)
        #expect(schedule.next(at: 10_000) == .sleep(until: nil, urgent: 1, any: true))
        #expect(schedule.next(at: 10_000, closing: true) == .finish)
    }

    @Test func `at the end all that is left is done first`() {
        schedule.committed(urgent: 100, pagesInLog: 1, at: 10)
        #expect(schedule.next(at: 10, urgent: 1, closing: true) == .commit)
        #expect(schedule.next(at: 10, work: true, closing: true) == .commit)
        #expect(schedule.next(at: 10, closing: true) == .finish)
    }

    @Test func `a disk that fails at the end is not waited for`() {
        schedule.became(.stalled, at: 0)
        #expect(schedule.next(at: 1000, urgent: 1, closing: true) == .refuse)
        #expect(schedule.next(at: 1000, work: true, closing: true) == .finish)
    }
}
