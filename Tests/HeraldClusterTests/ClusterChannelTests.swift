import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// Channels and broadcasts of several nodes on one log.
@Suite struct ClusterChannelTests {
    private static let channel = BroadcastChannel(
        id: ChannelID(high: 7, low: 1),
        app: AppNumber(1),
        storage: .newest,
        created: WallTime(milliseconds: 0)
    )

    private let log = MemoryLog()
    private let clock = ManualClock()
    private let time = SimTime()
    private var now: WallTime { clock.now() }

    /// A node's channels, which it follows, with a witness and a journal.
    private struct Node {
        let channels: ClusterChannels
        let witness = ChannelWitness()
        let journal: MemoryStore

        func publish(_ broadcast: Broadcast, at moment: WallTime) async throws {
            try await withCheckedThrowingContinuation { continuation in
                channels.publish(broadcast, at: moment) { continuation.resume(with: $0) }
            }
        }

        /// The states of a broadcast in the node's own journal.
        func states(_ number: UInt64) async throws -> [JournalState] {
            let query = JournalQuery.notification(NotificationID(high: 0xC, low: number))
            return try await journal.lines(matching: query, limit: 100).map(\.state)
        }
    }

    private func node(_ name: String) async throws -> Node {
        let node = try #require(NodeName(name))
        let journal = MemoryStore(clock: clock)
        let context = ClusterContext(
            own: ClaimRecord(node: node, incarnation: 1),
            partitions: try #require(Partitions(count: 1)),
            log: log,
            journal: journal,
            clock: clock,
            scheduler: time,
            logger: .silent
        )
        let channels = ClusterChannels(context)
        try await channels.start()
        let made = Node(channels: channels, journal: journal)
        channels.report(to: made.witness)
        return made
    }

    private func broadcast(
        _ number: UInt64,
        isStored: Bool = true,
        for duration: Duration = .seconds(3600)
    ) -> Broadcast {
        Broadcast(
            channel: Self.channel.id,
            app: Self.channel.app,
            number: 0,
            id: NotificationID(high: 0xC, low: number),
            uniqueID: NotificationID(high: 0xD, low: number),
            received: now,
            storedUntil: isStored ? now + duration : nil,
            priority: .immediate,
            payload: Array("{\"n\":\(number)}".utf8)
        )
    }

    @Test func `two nodes publish at once: both hand out all broadcasts once, in one order`() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try await a.channels.create(Self.channel)
        #expect(b.witness.heard.channels == [Self.channel.id])
        try await withThrowingTaskGroup { group in
            for number: UInt64 in 1...50 {
                let (one, node) = (broadcast(number), number % 2 == 0 ? a : b)
                group.addTask { try await node.publish(one, at: one.received) }
            }
            try await group.waitForAll()
        }
        let heard = await a.witness.wait { $0.received.count == 50 }.received
        #expect(Set(heard.map(\.id.low)) == Set(1...50))
        #expect(heard.map(\.number) == heard.map(\.number).sorted())
        #expect(await b.witness.wait { $0.received.count == 50 }.received == heard)
        #expect(a.channels.stored().map(\.newest) == [heard.last])
        #expect(b.channels.stored() == a.channels.stored())
    }

    @Test func `a node that was cut off hands out everything that it missed, and a new one nothing old`() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try await a.channels.create(Self.channel)
        log.holdBack(true)
        for number: UInt64 in 1...40 { try await a.publish(broadcast(number), at: now) }
        #expect(b.witness.heard.received == [])
        log.holdBack(false)
        #expect(b.witness.heard.ids == Array(1...40))
        #expect(a.witness.heard.received == b.witness.heard.received)
        let c = try await node("c")
        #expect(c.witness.heard.received == [] && c.channels.stored() == a.channels.stored())
        try await a.publish(broadcast(41), at: now)
        #expect(c.witness.heard.ids == [41])
    }

    @Test func `the newest for later subscribers is the last that was to be stored, at a new node too`() async throws {
        let a = try await node("a")
        try await a.channels.create(Self.channel)
        try await a.publish(broadcast(1), at: now)
        try await a.publish(broadcast(2, isStored: false), at: now)
        let b = try await node("b")
        for node in [a, b] { #expect(node.channels.stored().map { $0.newest?.id.low } == [1]) }
        #expect(a.witness.heard.ids == [1, 2])
    }

    @Test func `a broadcast with a lost answer is known by its coming, and a lost one stays unknown`() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        try await a.channels.create(Self.channel)
        log.fail(.lostAnswer)
        try await a.publish(broadcast(1), at: now)
        log.fail(.lostMessage)
        await #expect(throws: RecordChangeFailure.unknown) { try await a.publish(broadcast(2), at: now) }
        log.fail(.notSent)
        await #expect(throws: RecordChangeFailure.notSent) { try await a.publish(broadcast(3), at: now) }
        #expect(b.witness.heard.ids == [1])
        #expect(try await a.states(1) == [.storedForSubscribers])
        for number: UInt64 in 2...3 { #expect(try await a.states(number) == []) }
    }

    @Test func `the node that accepted a broadcast writes its lines, and deletes are in force everywhere`() async throws
    {
        let (a, b) = (try await node("a"), try await node("b"))
        try await a.channels.create(Self.channel)
        try await a.publish(broadcast(1), at: now)
        try await b.publish(broadcast(2, for: .seconds(60)), at: now)
        clock.advance(by: .seconds(60))
        for node in [a, b] { node.channels.removeExpired(at: now) }
        try await a.publish(broadcast(3), at: now)
        try await b.channels.delete(Self.channel.id, at: now)
        #expect(try await a.states(1) == [.storedForSubscribers, .replaced])
        #expect(try await b.states(2) == [.storedForSubscribers, .discardedExpiredFromStorage])
        #expect(try await a.states(3) == [.storedForSubscribers])
        #expect(try await b.states(3) == [.discardedChannelDeleted])
        #expect(try await b.states(1) == [])
        #expect(try await a.states(2) == [])
        for node in [a, b] { #expect(node.channels.stored() == [] && node.witness.heard.channels == []) }
        log.expireTombstones()
        #expect(try await node("c").channels.stored() == [])
    }

    @Test func `a channel and its broadcast are there in whichever order a node hears of them`() async throws {
        let (a, b) = (try await node("a"), try await node("b"))
        log.holdBack(true)
        try await a.channels.create(Self.channel)
        try await a.publish(broadcast(1), at: now)
        log.holdBack(false)
        #expect(b.channels.stored().map { $0.newest?.id.low } == [1])
        try await a.channels.delete(Self.channel.id, at: now)
        // Accepted before the node heard of the deletion.
        try await b.publish(broadcast(2), at: now)
        #expect(b.witness.heard.ids == [1])
    }
}
