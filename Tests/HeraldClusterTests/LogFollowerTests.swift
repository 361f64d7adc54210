import HeraldCluster
import HeraldModel
import NIOCore
import Synchronization
import Testing

@testable import HeraldSimulation

/// A follower of the log, in virtual time.
@Suite struct LogFollowerTests {
    private let log = MemoryLog()
    private let time = SimTime()
    private let heard = Heard()
    private let partition = Partition(0)
    private let follower: LogFollower

    init() throws {
        let heard = heard
        follower = LogFollower(
            .mailbox(partition),
            filters: [.claims(partition)],
            log: log,
            barriers: LogBarriers(log: log, node: try #require(NodeName("c"))),
            scheduler: time
        ) { heard.add($0) }
    }

    private func write(_ subject: LogSubject, _ payload: UInt8 = 1) -> UInt64 {
        let written = Mutex<UInt64>(0)
        log.append(LogMessage(subject, payload: ByteBuffer(integer: payload)), to: .mailbox(partition)) { outcome in
            if case .stored(let sequence) = outcome { written.withLock { $0 = sequence } }
        }
        return written.withLock { $0 }
    }

    private func claim(_ device: UInt64) -> UInt64 { write(.claim(DeviceNumber(device), partition)) }

    @Test func `it applies what was there and what comes, in order, and nothing else`() {
        let first = claim(1)
        _ = write(.slot(Slot(device: DeviceNumber(1), app: AppNumber(1)), generation: 0, partition))
        let second = claim(2)
        follower.start { _ in heard.note("started") }
        let third = claim(1)
        #expect(heard.lines == ["\(first)", "\(second)", "started", "\(third)"])
        #expect(follower.position == third)
    }

    @Test func `a start waits for everything that was stored before it`() {
        log.holdBack(true)
        let first = claim(1)
        follower.start { _ in heard.note("started") }
        time.pass(.seconds(25))
        #expect(heard.lines.isEmpty)
        log.holdBack(false)
        #expect(heard.lines == ["\(first)", "started"])
    }

    @Test func `a start to which nothing comes fails, and names the stream`() {
        log.holdBack(true)
        _ = claim(1)
        follower.start { heard.note("\($0)") }
        time.pass(.seconds(29))
        #expect(heard.lines.isEmpty)
        time.pass(.seconds(3))
        let failure = LogFailure.silent("HERALD_BOX_0")
        #expect(heard.lines == ["failure(\(failure))"] && "\(failure)".contains("HERALD_BOX_0"))
    }

    @Test func `a following that brings nothing is begun anew, at its place`() {
        let first = claim(1)
        follower.start { _ in heard.note("started") }
        log.dropFollowers()
        let second = claim(2)
        time.pass(.seconds(9))
        #expect(heard.lines == ["\(first)", "started"])
        time.pass(.seconds(6))
        #expect(heard.lines == ["\(first)", "started", "\(second)"])
        #expect(follower.lag < ClusterLimits.followerFreshness)
    }

    @Test func `the cancellation of its task ends a start, and another one succeeds`() async throws {
        log.holdBack(true)
        let first = claim(1)
        let starting = Task { [follower] in try await follower.start() }
        starting.cancel()
        await #expect(throws: LogFailure.unavailable) { try await starting.value }
        log.holdBack(false)
        try await follower.start()
        #expect(heard.lines == ["\(first)"])
    }

    @Test func `a start without servers fails, and succeeds later`() {
        log.setAway(true)
        follower.start { heard.note("\($0)") }
        #expect(heard.lines == ["failure(\(LogFailure.unavailable))"])
        log.setAway(false)
        let first = claim(1)
        follower.start { _ in heard.note("started") }
        #expect(heard.lines.suffix(2) == ["\(first)", "started"])
    }

    @Test func `who waits for a sequence is called when it has been applied`() {
        follower.start { _ in }
        let first = claim(1)
        follower.wait(for: first) { heard.note("first") }
        follower.wait(for: first + 2) { heard.note("third") }
        follower.wait(for: first + 1) { heard.note("second") }
        let second = claim(2)
        let third = claim(3)
        #expect(heard.lines == ["\(first)", "first", "\(second)", "second", "\(third)", "third"])
    }

    @Test func `catching up applies what was stored before`() {
        follower.start { _ in }
        log.holdBack(true)
        let first = claim(1)
        for _ in 1...3 { follower.catchUp { _ in heard.note("caught up") } }
        #expect(heard.lines.isEmpty)
        log.holdBack(false)
        #expect(heard.lines == ["\(first)", "caught up", "caught up", "caught up"])
    }

    @Test func `catching up fails after ten seconds in which no barrier comes back`() {
        follower.start { _ in }
        log.holdBack(true)
        follower.catchUp { heard.note("\($0)") }
        time.pass(.seconds(9))
        #expect(heard.lines.isEmpty)
        time.pass(.seconds(3))
        #expect(heard.lines == ["failure(\(LogFailure.behind))"])
    }

    @Test func `the lag grows while barriers do not come back, and no longer`() {
        follower.start { _ in }
        time.pass(.seconds(30))
        #expect(follower.lag < ClusterLimits.followerFreshness)
        log.holdBack(true)
        time.pass(.seconds(20))
        #expect(follower.lag >= .seconds(20))
        log.holdBack(false)
        time.pass(.seconds(3))
        #expect(follower.lag < ClusterLimits.followerFreshness)
        log.setAway(true)
        time.pass(.seconds(20))
        #expect(follower.lag >= .seconds(17))
    }

    @Test func `nothing comes after its end, and who waits fails`() {
        follower.start { _ in }
        log.holdBack(true)
        _ = claim(1)
        follower.catchUp { heard.note("\($0)") }
        follower.cancel()
        #expect(heard.lines == ["failure(\(LogFailure.unavailable))"])
        log.holdBack(false)
        _ = claim(2)
        #expect(heard.lines.count == 1)
    }

    /// The filters of all streams leave out barriers, and have all records.
    @Test func `the filters of the records do not match barriers`() throws {
        let node = try #require(NodeName("c"))
        let topic = try #require(Topic("com.example.chat"))
        let device = DeviceNumber(1)
        let slot = Slot(device: device, app: AppNumber(1))
        let records: [(LogStream, LogSubject)] = [
            (.meta, .meta("cluster")), (.meta, .meta("next.devices")),
            (.apps, .app(App(topic: topic, environment: .production))),
            (.devices(partition), .device(DeviceHash(try #require(DeviceID("phone"))), partition)),
            (.registrations(partition), .registrations(device, partition)),
            (.mailbox(partition), .claim(device, partition)),
            (.mailbox(partition), .slot(slot, generation: 3, partition)),
        ]
        for (stream, subject) in records {
            #expect(SubjectFilter(stream.records).matches(subject), "\(subject)")
        }
        for stream in LogStream.all(of: try #require(Partitions(count: 1))) {
            #expect(!SubjectFilter(stream.records).matches(.barrier(node, in: stream)), "\(stream.name)")
        }
    }
}

/// Lines for the entries that a follower has applied, and for other events.
private final class Heard: Sendable {
    private let all = Mutex<[String]>([])

    var lines: [String] { all.withLock { $0 } }

    func note(_ line: String) { all.withLock { $0.append(line) } }

    func add(_ entries: [LogEntry]) {
        for entry in entries { note("\(entry.sequence)") }
    }
}
