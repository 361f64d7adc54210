import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// A cluster's mailbox whose log loses answers or goes away, in virtual time.
@Suite struct MailboxOutageTests {
    private let log = MemoryLog()
    private let time = SimTime()
    private let reports = Reports()
    private let mailbox: ClusterMailbox
    private let device = DeviceNumber(1)

    init() throws {
        let clock = ManualClock(WallTime(seconds: 1_800_000_000))
        let node = try #require(NodeName("a"))
        let context = ClusterContext(
            own: ClaimRecord(node: node, incarnation: 1),
            partitions: try #require(Partitions(count: 1)),
            log: log,
            journal: MemoryStore(clock: clock),
            clock: clock,
            scheduler: time,
            logger: .silent
        )
        mailbox = ClusterMailbox(context)
        mailbox.report(to: reports)
        mailbox.start { _ in }
    }

    private func put(_ number: UInt64) {
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: Slot(device: device, app: AppNumber(1)),
            received: WallTime(seconds: 1_800_000_000),
            storedUntil: WallTime(seconds: 1_800_003_600),
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: [123, 125]
        )
        mailbox.put(Envelope(notification), reason: .deviceOffline, tag: nil, isNew: true)
    }

    @Test func `a lost answer closes the partition at once, and is unknown two seconds past the deadline`() {
        log.fail(.cutOff)
        put(1)
        #expect(!mailbox.isAccepting(for: device))
        time.pass(.milliseconds(6900))
        #expect(reports.lines.isEmpty)
        time.pass(.milliseconds(200))
        #expect(reports.lines == ["unknown 1"])
        #expect(!mailbox.isAccepting(for: device))

        log.setAway(false)
        time.pass(.seconds(1))
        #expect(mailbox.isAccepting(for: device))
        put(2)
        time.pass(.seconds(1))
        #expect(reports.lines == ["unknown 1", "stored 2"])
    }

    @Test func `puts of a slot wait until a lost answer has been found`() {
        log.fail(.cutOff)
        put(1)
        put(2)
        put(3)
        time.pass(.seconds(3))
        #expect(log.appends == 1)
        log.setAway(false)
        time.pass(.seconds(1))
        #expect(reports.lines == ["stored 1", "stored 2", "stored 3"])
        #expect(log.appends == 2)
    }

    @Test func `removals of a log that is away are repeated together, once a second`() {
        put(1)
        time.pass(.seconds(1))
        let slot = RegisteredSlot(Slot(device: device, app: AppNumber(1)), generation: 0)
        log.fail(.lostMessage, .notSent)
        mailbox.remove(slot, sequence: 1002, event: nil)
        time.pass(.milliseconds(2900))
        #expect(log.appends == 4, "a put, and three removals")
        time.pass(.seconds(5))
        #expect(log.appends == 4)
    }
}

/// The reports of a mailbox in words.
private final class Reports: MailboxStoreReporter {
    private let all = Mutex<[String]>([])

    var lines: [String] { all.withLock { $0 } }

    func stored(_ puts: [StoredPut]) { note("stored", puts.map(\.envelope)) }
    func failed(_ envelopes: [Envelope]) { note("failed", envelopes) }
    func unknown(_ envelopes: [Envelope]) { note("unknown", envelopes) }

    private func note(_ word: String, _ envelopes: [Envelope]) {
        all.withLock { $0 += envelopes.map { "\(word) \($0.notification.id.low)" } }
    }
}
