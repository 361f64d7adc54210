import HeraldModel
import Testing

@testable import HeraldMailbox

/// The decisions about what the other nodes of a cluster do.
@Suite struct OtherNodesTests {
    private var scene = ClusterShardScene(budget: BackgroundBudget(burst: 1, perHour: 1))

    private func once(_ number: UInt64, generation: UInt32? = nil) -> Envelope {
        scene.envelope(number, generation: generation, isStorable: false)
    }

    private mutating func hear(_ envelopes: Envelope...) -> [Bool] {
        envelopes.map { scene.shard.storedElsewhere(scene.stored($0), now: scene.now) }
    }

    private mutating func take(_ envelope: Envelope) -> PassedDelivery {
        scene.shard.deliverOnce(envelope, now: scene.now)
    }

    private mutating func post(_ envelope: Envelope, isHeldElsewhere: Bool = false) -> PostDecision {
        scene.shard.post(envelope, isHeldElsewhere: isHeldElsewhere)
    }

    @Test mutating func `a notification that another node has stored is delivered once, and no older one after it`() {
        scene.connect()
        #expect(hear(scene.envelope(8)) == [true])
        #expect(hear(scene.envelope(8), scene.envelope(6)) == [true, true])
        #expect(scene.delivered == [8])
        #expect(hear(scene.envelope(9)) == [true])
        #expect(scene.delivered == [8, 9] && scene.effects(on: 8).isEmpty)
    }

    @Test mutating func `one that is held here although another node has stored it has a line here, once`() {
        scene.connect()
        let all = (1...3).map { scene.envelope($0, pushType: .background) }
        for envelope in all + all { #expect(hear(envelope) == [true]) }
        #expect(scene.delivered == [1])
        for number in 2...3 { #expect(scene.effects(on: UInt64(number)) == [.record(.storedBudget)]) }
    }

    @Test mutating func `a notification for a device at another node is stored to be sent, not to wait`() {
        #expect(post(scene.envelope(1)) == .pending && post(scene.envelope(2), isHeldElsewhere: true) == .pending)
        #expect(scene.effects(on: 1) == [.record(.received), .store(.deviceOffline, nil)])
        #expect(scene.effects(on: 2) == [.record(.received), .store(.beforeDelivery, nil)])
        // Its newest connection is here, whatever was known of the other node.
        scene.connect()
        scene.shard.close(scene.slot, fence: 1)
        #expect(post(scene.envelope(3), isHeldElsewhere: true) == .pending)
        #expect(scene.effects(on: 3) == [.record(.received), .store(.notSubscribed, nil)])
    }

    @Test mutating func `while the mailbox is read, it waits for the answer`() {
        scene.attach()
        #expect(hear(scene.envelope(8)) == [true] && scene.delivered.isEmpty)
        let found = [scene.stored(scene.envelope(5))]
        scene.shard.haveRead([scene.slot], found: found, number: scene.shard.lastRead, now: scene.now)
        #expect(scene.delivered == [8])
    }

    @Test mutating func `an unknown registration changes nothing`() {
        scene.connect()
        #expect(hear(scene.envelope(8, generation: 3)) == [false])
        #expect(take(once(9, generation: 3)) == .unknownRegistration)
        #expect(scene.shard.effects.isEmpty)
    }

    @Test mutating func `a single attempt goes to the connection, wherever it is`() {
        #expect(post(once(1)) == .accepted)
        #expect(scene.effects(on: 1) == [.record(.received), .passOn])
        #expect(take(once(2)) == .notHere)
        #expect(scene.effects(on: 2).isEmpty)
        scene.connect()
        #expect(take(once(3)) == .taken && post(once(4)) == .accepted)
        #expect(scene.delivered == [3, 4] && scene.effects(on: 3).isEmpty)
        scene.shard.close(scene.slot, fence: 1)
        #expect(take(once(5)) == .taken && post(once(6)) == .accepted)
        #expect(scene.effects(on: 5) == [.record(.discardedNotSubscribed)])
        #expect(scene.effects(on: 6) == [.record(.received), .record(.discardedNotSubscribed)])
    }

    @Test mutating func `the holder's journal says that the token is missing`() {
        scene.connect()
        scene.shard.close(scene.slot, fence: 1, awaitsToken: true)
        #expect(hear(scene.envelope(7)) == [true])
        #expect(scene.effects(on: 7) == [.record(.storedTokenMissing)])
    }

    @Test mutating func `a connection that another node has overtaken ends, and no newer one`() {
        let device = scene.slot.device
        scene.connect(fence: 5)
        scene.shard.letGo(device, fence: 4)
        #expect(scene.shard.connections[device] != nil && scene.shard.effects.isEmpty)
        scene.shard.letGo(device, fence: 5)
        let reasons = scene.shard.effects.compactMap { effect -> DismissalReason? in
            if case .dismiss(_, let reason) = effect { reason } else { nil }
        }
        #expect(scene.shard.connections[device] == nil && reasons == [.takenOver])
    }
}
