import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import NIOCore
import Synchronization
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// Rings and claims of nodes on one log, in virtual time.
@Suite struct NodeRingsTests {
    private let log = MemoryLog()
    private let time = SimTime()
    private let messages: MemoryNodes
    private let live = LiveSet()
    private let a: RingingNode
    private let b: RingingNode
    private let device = DeviceNumber(7)

    init() throws {
        messages = MemoryNodes(scheduler: time)
        a = try RingingNode("a", log, messages, time: time, live: live)
        b = try RingingNode("b", log, messages, time: time, live: live)
        for node in [a, b] { node.rings.start { _ in } }
        time.pass(.milliseconds(1))
    }

    /// Stores a notification at a node, which then rings.
    private func store(at node: RingingNode, _ number: UInt64 = 1) -> UInt64 {
        let put = put(number)
        node.directory.notifyHolders(of: [put])
        return put.sequence
    }

    private func put(_ number: UInt64) -> StoredPut {
        let partition = Partition(0)
        let slot = Slot(device: device, app: AppNumber(1))
        let message = LogMessage(.slot(slot, generation: 1, partition), payload: ByteBuffer(integer: number))
        let sequence = log.stored(message, in: .mailbox(partition))
        let envelope = Envelope(notification(number, isStorable: true), generation: 1)
        return StoredPut(envelope: envelope, sequence: sequence, tag: nil)
    }

    private func notification(_ number: UInt64, isStorable: Bool) -> Notification {
        Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: Slot(device: device, app: AppNumber(1)),
            received: WallTime(seconds: 1_800_000_000),
            storedUntil: isStorable ? WallTime(seconds: 1_800_000_060) : nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: Array("{}".utf8)
        )
    }

    private func claim(at node: RingingNode, silence: Duration? = .zero) -> Result<UInt64, any Error>? {
        let claimed = Mutex<Result<UInt64, any Error>?>(nil)
        node.directory.claim(device, for: { $0(silence) }, { result in claimed.withLock { $0 = result } })
        return claimed.withLock { $0 }
    }

    @Test func `the holder of the device hears of a notification, once`() throws {
        _ = try #require(claim(at: b)).get()
        let sequence = store(at: a)
        time.pass(.milliseconds(1))
        #expect(b.heard.stored == [sequence])
        time.pass(.seconds(1))
        #expect(b.heard.stored == [sequence] && a.heard.ringEnds == [true])
    }

    @Test func `nobody is rung for a device that nobody holds, or that is here`() throws {
        _ = store(at: a)
        time.pass(.seconds(1))
        _ = try #require(claim(at: a)).get()
        _ = store(at: a)
        time.pass(.seconds(1))
        #expect(b.heard.stored.isEmpty && a.heard.ringEnds == [true, true])
    }

    @Test func `a lost ring is repeated, and given up when nobody answers`() throws {
        _ = try #require(claim(at: b)).get()
        messages.lose { address, _ in address == .kind(.ring) }
        let sequence = store(at: a)
        time.pass(.milliseconds(150))
        messages.lose(nil)
        time.pass(.milliseconds(300))
        #expect(b.heard.stored.isEmpty)
        time.pass(.milliseconds(150))
        #expect(b.heard.stored == [sequence] && a.heard.ringEnds == [true])
        messages.lose { address, _ in address == .kind(.ring) }
        _ = store(at: a)
        time.pass(.seconds(20))
        #expect(a.heard.ringEnds == [true])
        time.pass(.seconds(4))
        #expect(a.heard.ringEnds == [true, false])
    }

    @Test func `a node that has not heard of a claim rings as soon as it has`() throws {
        _ = try #require(claim(at: a)).get()
        log.holdBack(true)
        _ = try #require(claim(at: b)).get()
        let sequence = store(at: a)
        time.pass(.milliseconds(50))
        #expect(b.heard.stored.isEmpty)
        log.holdBack(false)
        time.pass(.milliseconds(1))
        #expect(b.heard.stored == [sequence])
    }

    @Test func `a ring that the holder has answered is not repeated while the claims are missing`() throws {
        _ = try #require(claim(at: b)).get()
        log.holdBack(true)
        messages.count()
        let sequence = store(at: a)
        time.pass(.milliseconds(1400))
        #expect(messages.counts == [.kind(.ring): 1, .kind(.rung): 1])
        #expect(b.heard.stored == [sequence] && a.heard.ringEnds.isEmpty)
        log.holdBack(false)
        time.pass(.milliseconds(100))
        #expect(messages.counts == [.kind(.ring): 1, .kind(.rung): 1] && a.heard.ringEnds == [true])
    }

    @Test func `a ring that the former holder has answered goes to the one whose claim comes late`() throws {
        let c = try RingingNode("c", log, messages, time: time, live: live)
        c.rings.start { _ in }
        _ = try #require(claim(at: b)).get()
        log.holdBack(true)
        _ = try #require(claim(at: c)).get()
        let sequence = store(at: a)
        time.pass(.milliseconds(300))
        #expect(b.heard.stored == [sequence] && c.heard.stored.isEmpty && a.heard.ringEnds.isEmpty)
        log.holdBack(false)
        time.pass(.milliseconds(1))
        #expect(c.heard.stored == [sequence])
        time.pass(.milliseconds(300))
        #expect(a.heard.ringEnds == [true])
    }

    @Test func `rings of one turn travel together, and so do their answers`() throws {
        _ = try #require(claim(at: b)).get()
        messages.count()
        let puts = (1...3).map { put($0) }
        a.directory.notifyHolders(of: puts)
        time.pass(.seconds(1))
        #expect(b.heard.stored == puts.map(\.sequence) && a.heard.ringEnds == [true, true, true])
        #expect(messages.counts == [.kind(.ring): 1, .kind(.rung): 1])
    }

    @Test func `a ring is not news to a read that begins just before its delivery`() throws {
        _ = try #require(claim(at: b)).get()
        b.heard.setBeforeNews { [mailbox = b.mailbox, device] in
            mailbox.read([RegisteredSlot(Slot(device: device, app: AppNumber(1)), generation: 1)]) { _ in }
        }
        let older = put(1)
        let newer = put(2)
        b.mailbox.saw(newer.sequence, of: device)
        a.directory.notifyHolders(of: [older])
        time.pass(.seconds(1))
        #expect(b.heard.stored.isEmpty && a.heard.ringEnds == [true])
    }

    @Test func `a ring for what the read had to contain is not news`() throws {
        let sequence = store(at: a)
        log.holdBack(true)
        let fence = try #require(claim(at: b)).get()
        #expect(fence > sequence)
        // It is repeated to all, since the claims do not come.
        messages.count()
        time.pass(.seconds(2))
        #expect(b.heard.stored.isEmpty && messages.counts[.kind(.ring)] == 1)
    }

    @Test func `the newer claim ends the older connection, at another node`() throws {
        let first = try #require(claim(at: a)).get()
        #expect(a.directory.holds(device, fence: first) && b.directory.isHeldElsewhere(device))
        let second = try #require(claim(at: b)).get()
        #expect(a.heard.ended == [first] && b.heard.ended.isEmpty)
        #expect(!a.directory.holds(device, fence: first) && b.directory.holds(device, fence: second))
        // Its release takes nothing away from the newer one.
        a.directory.release(device, fence: first)
        #expect(a.directory.isHeldElsewhere(device) && a.rings.claimCount == 1)
        b.directory.release(device, fence: second)
        #expect(!a.directory.isHeldElsewhere(device) && a.rings.claimCount == 0)
    }

    @Test func `a claim that is not the newest any more serves no connection`() throws {
        let partition = Partition(0)
        // The claim of another node comes into the log between this one's and its answer.
        log.fail(.lostAnswer)
        #expect(throws: ClusterDirectory.ClaimFailure.self) { _ = try claim(at: a)?.get() }
        let newer = log.stored(LogMessage(.claim(device, partition), payload: b.own.body), in: .mailbox(partition))
        #expect(!a.rings.claimed(device, fence: newer - 1))
    }

    @Test func `a claim serves no connection if a newer one was made and released since`() throws {
        let subject = LogSubject.claim(device, Partition(0))
        log.fail(.lostAnswer)
        #expect(throws: ClusterDirectory.ClaimFailure.self) { _ = try claim(at: a)?.get() }
        let newer = log.stored(LogMessage(subject, payload: b.own.body), in: .mailbox(Partition(0)))
        _ = log.stored(.tombstone(subject, expecting: newer), in: .mailbox(Partition(0)))
        #expect(!a.rings.claimed(device, fence: newer - 1))
    }

    @Test func `a release in the log ends an older connection, whose newer claim may have been left out`() throws {
        let first = try #require(claim(at: a)).get()
        let subject = LogSubject.claim(device, Partition(0))
        _ = log.stored(.tombstone(subject, expecting: first), in: .mailbox(Partition(0)))
        #expect(a.heard.ended == [first] && !a.directory.holds(device, fence: first))
    }

    @Test func `a claim ends the older connection of its own node, also if its connection is gone`() throws {
        let first = try #require(claim(at: a)).get()
        log.holdBack(true)
        let second = try #require(claim(at: a)).get()
        a.directory.release(device, fence: second)
        #expect(a.heard.ended == [first] && !a.directory.holds(device, fence: first))
    }

    @Test func `a CONNECT whose client has gone claims nothing`() throws {
        let first = try #require(claim(at: b)).get()
        #expect(throws: ClientGone.self) { _ = try claim(at: a, silence: nil)?.get() }
        #expect(b.directory.holds(device, fence: first) && b.heard.ended.isEmpty)
    }

    @Test func `a CONNECT that waited does not replace a claim that came meanwhile, and replaces an older one`() throws
    {
        let first = try #require(claim(at: b)).get()
        #expect(throws: ClientGone.self) { _ = try claim(at: a, silence: .seconds(3))?.get() }
        #expect(b.directory.holds(device, fence: first))
        time.pass(.seconds(5))
        #expect(try #require(claim(at: a, silence: .seconds(3))).get() > first)
    }

    @Test func `a claim names the one that it replaces, so a late one fails, and a prompt one looks again`() throws {
        _ = try #require(claim(at: a)).get()
        time.pass(.seconds(9))
        log.holdBack(true)
        let newer = try #require(claim(at: b)).get()
        // A has not heard of it.
        #expect(throws: ClientGone.self) { _ = try claim(at: a, silence: .seconds(3))?.get() }
        #expect(try #require(claim(at: a)).get() > newer)
    }

    @Test func `a ring for an unknown registration waits until the registrations are known`() throws {
        _ = try #require(claim(at: b)).get()
        b.heard.setBehind()
        let sequence = store(at: a)
        time.pass(.milliseconds(1))
        #expect(b.heard.stored == [sequence] && b.heard.catchUps == 1)
    }

    @Test func `a ring that waited for its registration is not news to a connection that came meanwhile`() throws {
        _ = try #require(claim(at: b)).get()
        b.heard.setBehind { [directory = b.directory, device] in directory.claim(device, for: { $0(.zero) }, { _ in }) }
        _ = store(at: a)
        time.pass(.seconds(1))
        #expect(b.heard.stored.isEmpty && b.heard.catchUps == 1 && a.heard.ringEnds == [true])
    }

    @Test func `a node that is gone is not rung`() throws {
        _ = try #require(claim(at: b)).get()
        live.remove(b.own.node)
        _ = store(at: a)
        time.pass(.milliseconds(600))
        #expect(b.heard.stored.isEmpty && a.heard.ringEnds == [true])
        #expect(!a.directory.isHeldElsewhere(device))
    }

    @Test func `a single attempt goes to the holder, and its end is told`() throws {
        let taken = Mutex<[Bool]>([])
        func pass(_ number: UInt64) {
            let envelope = Envelope(notification(number, isStorable: false), generation: 1)
            a.directory.passOn(envelope) { isTaken in taken.withLock { $0.append(isTaken) } }
            time.pass(.milliseconds(1))
        }
        pass(1)
        #expect(taken.withLock { $0 } == [false])
        _ = try #require(claim(at: b)).get()
        pass(2)
        #expect(taken.withLock { $0 } == [false, true] && b.heard.once == [2])
        messages.lose { address, _ in address == .kind(.once) }
        pass(3)
        time.pass(ClusterLimits.passOnTime)
        #expect(taken.withLock { $0 } == [false, true, false] && b.heard.once == [2])
        messages.lose(nil)
        // The claims that this node knows are old: the device may be anywhere.
        b.directory.release(device, fence: b.mailbox.fence(of: device) ?? 0)
        log.holdBack(true)
        time.pass(ClusterLimits.staleClaims + .seconds(3))
        pass(4)
        #expect(taken.withLock { $0.last } == true && b.heard.once == [2, 4])
    }
}

/// The nodes that live in a test.
private final class LiveSet: Sendable {
    private struct View: LiveNodes {
        let all: LiveSet
        let own: NodeName

        var others: Set<NodeName> { all.names.withLock { $0.subtracting([own]) } }
        func mayLive(_ holder: ClaimRecord) -> Bool { all.names.withLock { $0.contains(holder.node) } }
    }

    private let names = Mutex<Set<NodeName>>([])

    func join(_ node: NodeName) -> any LiveNodes {
        names.withLock { _ = $0.insert(node) }
        return View(all: self, own: node)
    }

    func remove(_ node: NodeName) { names.withLock { _ = $0.remove(node) } }
}

/// A node whose connections are notes.
private final class RingingNode: Sendable {
    let own: ClaimRecord
    let heard = HeardNotes()
    let mailbox: ClusterMailbox
    let rings: NodeRings
    let directory: ClusterDirectory

    init(_ name: String, _ log: MemoryLog, _ messages: MemoryNodes, time: SimTime, live: LiveSet) throws {
        own = ClaimRecord(node: try #require(NodeName(name)), incarnation: 1)
        let partitions = try #require(Partitions(count: 1))
        let clock = ManualClock(WallTime(seconds: 1_800_000_000))
        let context = ClusterContext(
            own: own,
            partitions: partitions,
            log: log,
            journal: MemoryStore(clock: clock),
            clock: clock,
            scheduler: time,
            logger: .silent
        )
        mailbox = ClusterMailbox(context)
        rings = NodeRings(
            context,
            messages: messages.join(own.node),
            mailbox: mailbox,
            nodes: live.join(own.node)
        ) { [heard] _, done in
            heard.catchUp()
            done(.success(()))
        } onEnd: { [heard] _, isAnswered in
            heard.ringEnded(isAnswered)
        }
        directory = ClusterDirectory(context, mailbox: mailbox, rings: rings)
        directory.serve(heard)
    }
}

/// Notes of everything that a node would deliver and end.
private final class HeardNotes: ConnectionHolder {
    private struct Notes {
        var stored: [UInt64] = []
        var once: [UInt64] = []
        var ended: [UInt64] = []
        var ringEnds: [Bool] = []
        var catchUps = 0
        var isBehind = false
        var meanwhile: (@Sendable () -> Void)?
        var beforeNews: (@Sendable () -> Void)?
    }

    private let notes = Mutex(Notes())

    var stored: [UInt64] { notes.withLock { $0.stored } }
    var once: [UInt64] { notes.withLock { $0.once } }
    var ended: [UInt64] { notes.withLock { $0.ended } }
    var ringEnds: [Bool] { notes.withLock { $0.ringEnds } }
    var catchUps: Int { notes.withLock { $0.catchUps } }

    /// The next registration is not known here; `meanwhile` happens while the node catches up.
    func setBehind(_ meanwhile: (@Sendable () -> Void)? = nil) {
        notes.withLock { notes in
            notes.isBehind = true
            notes.meanwhile = meanwhile
        }
    }

    /// `body` happens when the next ring comes to the connections, before they ask whether it is news.
    func setBeforeNews(_ body: @escaping @Sendable () -> Void) { notes.withLock { $0.beforeNews = body } }

    func catchUp() {
        let meanwhile = notes.withLock { notes in
            notes.catchUps += 1
            notes.isBehind = false
            return notes.meanwhile.take()
        }
        meanwhile?()
    }

    func ringEnded(_ isAnswered: Bool) { notes.withLock { $0.ringEnds.append(isAnswered) } }

    func storedElsewhere(_ stored: StoredNotification, isNews: () -> Bool) -> Bool {
        notes.withLock { $0.beforeNews.take() }?()
        guard isNews() else { return true }
        return notes.withLock { notes in
            if !notes.isBehind { notes.stored.append(stored.sequence) }
            return !notes.isBehind
        }
    }

    func deliverOnce(_ envelope: Envelope) -> PassedDelivery {
        notes.withLock { $0.once.append(envelope.notification.id.low) }
        return .taken
    }

    func letGo(_ device: DeviceNumber, fence: UInt64) { notes.withLock { $0.ended.append(fence) } }
}

extension MemoryLog {
    /// Appends a message that is stored at once.
    fileprivate func stored(_ message: LogMessage, in stream: LogStream) -> UInt64 {
        let sequence = Mutex<UInt64>(0)
        append(message, to: stream) { outcome in
            if case .stored(let stored) = outcome { sequence.withLock { $0 = stored } }
        }
        return sequence.withLock { $0 }
    }
}
