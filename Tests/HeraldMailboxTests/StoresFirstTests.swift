import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

/// The rules of a cluster's node: the log decides, so everything storable is stored before it is sent.
@Suite struct StoresFirstTests {
    private var scene = ClusterShardScene()

    init() { scene.connect() }

    /// The tags of the puts that were ordered for a connected device.
    private var tags: [PutTag?] {
        scene.shard.effects.compactMap { effect in
            if case .envelope(_, .store(.beforeDelivery, let tag)) = effect { tag } else { nil }
        }
    }

    @Test mutating func `a connected device gets a notification when the store has confirmed it`() throws {
        let envelope = scene.envelope(1)
        #expect(scene.shard.post(envelope) == .pending)
        #expect(scene.delivered.isEmpty && tags == [PutTag(fence: 1, delivery: nil)])
        scene.report(envelope, tag: tags.first ?? nil)
        #expect(scene.delivered == [1] && scene.settled == [.accepted])
    }

    @Test mutating func `a connected device gets all that are posted at once, in order`() throws {
        let all = (1...3).map { scene.envelope($0) }
        for envelope in all { #expect(scene.shard.post(envelope) == .pending) }
        #expect(tags.count == 3)
        for (envelope, tag) in zip(all, tags) { scene.report(envelope, tag: tag) }
        #expect(scene.delivered == [1, 2, 3] && scene.settled == [.accepted, .accepted, .accepted])
    }

    @Test mutating func `a write with an unknown outcome gets no answer, and reaches no device`() {
        let envelope = scene.envelope(1)
        #expect(scene.shard.post(envelope) == .pending)
        scene.shard.couldNotStore(envelope, .unknown)
        #expect(scene.delivered.isEmpty && scene.settled == [.unknown])
        #expect(scene.shard.connections[scene.slot.device]?.gates[scene.slot.app]?.unconfirmedWrites == 0)
    }

    @Test mutating func `what was posted to an earlier registration reaches no device`() {
        scene.shard.close(scene.slot, fence: 1)
        scene.open(scene.slot)
        let old = scene.stored(scene.envelope(1, generation: 1))
        scene.shard.haveRead([scene.slot], found: [old], number: scene.shard.lastRead, now: scene.now)
        scene.report(scene.envelope(2, generation: 1), sequence: 6)
        #expect(scene.delivered.isEmpty)
        scene.report(scene.envelope(3), sequence: 7)
        #expect(scene.delivered == [3])
    }

    @Test mutating func `an app that is opened anew waits for its own read`() {
        scene.shard.close(scene.slot, fence: 1)
        scene.open(scene.slot)
        let first = scene.shard.lastRead
        scene.shard.close(scene.slot, fence: 1)
        scene.open(scene.slot)
        let second = scene.shard.lastRead
        let waiting = scene.stored(scene.envelope(1))
        // The first read began before it was stored, and the second one after.
        scene.shard.haveRead([scene.slot], found: [], number: first, now: scene.now)
        scene.shard.couldNotRead([scene.slot], number: first)
        scene.shard.haveRead([scene.slot], found: [waiting], number: second, now: scene.now)
        #expect(scene.delivered == [1])
    }

    @Test mutating func `what waits for room is read when an app that fills it is removed`() {
        let other = Slot(device: scene.slot.device, app: AppNumber(4))
        scene.register(other)
        scene.open(other)
        scene.readNothing(other)
        for number in 1...4 {
            scene.report(scene.envelope(UInt64(number)))
        }
        let waiting = scene.stored(scene.envelope(5, to: other))
        scene.report(scene.envelope(5, to: other))
        #expect(scene.delivered == [1, 2, 3, 4])
        let last = scene.shard.lastRead
        scene.shard.endRegistration(scene.slot, at: scene.now)
        #expect(scene.shard.lastRead == last + 1)
        scene.shard.haveRead([other], found: [waiting], number: scene.shard.lastRead, now: scene.now)
        #expect(scene.delivered == [1, 2, 3, 4, 5])
    }

    @Test mutating func `a late report about an older notification opens no gate that a newer one keeps blocked`() {
        scene.shard.setSavingPower(true, device: scene.slot.device, fence: 1)
        scene.report(scene.envelope(2, priority: .conserving), sequence: 8)
        scene.report(scene.envelope(1), sequence: 7)
        #expect(scene.delivered.isEmpty)
        scene.shard.clearEffects()
        scene.shard.setSavingPower(false, device: scene.slot.device, fence: 1)
        let reads = scene.shard.effects.compactMap { effect in
            if case .read(let slots, _) = effect { slots } else { nil }
        }
        #expect(reads == [[RegisteredSlot(scene.slot, generation: 2)]])
    }
}
