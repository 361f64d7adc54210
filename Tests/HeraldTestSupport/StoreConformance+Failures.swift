import HeraldMailbox
import HeraldModel
import Testing

extension StoreConformance {
    /// Rules for writes of the mailbox that fail, and that work again later.
    static let mailboxTroubleRules: [Rule] = [
        Rule("a put that cannot be written is reported as failed, and nothing of it is kept") { (scene) async throws in
            let slot = StoreScene.slot(1)
            await scene.put(1, to: slot)
            #expect(scene.store.isAccepting)
            scene.fixture.setFailsWrites(true)
            #expect(await scene.put(2, to: slot) == nil)
            #expect(!scene.store.isAccepting)
            scene.fixture.setFailsWrites(false)
            try await untilWritable(scene)
            #expect(scene.store.isAccepting)
            #expect(try await scene.waiting(slot) == [1])
            #expect(try await scene.states(1) == [.storedDeviceOffline])
            #expect(try await scene.states(2) == [])
            await scene.put(3, to: slot)
            #expect(try await scene.waiting(slot) == [3])
        },
        Rule("that something came stays on record although it could not be stored") { (scene) async throws in
            scene.fixture.setFailsWrites(true)
            let envelope = Envelope(scene.notification(1, to: StoreScene.slot(1)))
            scene.store.put(envelope, reason: .deviceOffline, tag: nil, isNew: true)
            await scene.witness.wait { $0.failed.count == 1 }
            scene.fixture.setFailsWrites(false)
            try await untilWritable(scene)
            #expect(try await scene.states(1) == [.received])
            #expect(scene.holds(0))
        },
        Rule("of puts that fail together each is told once") { (scene) async throws in
            scene.fixture.setFailsWrites(true)
            for number in 1...1500 {
                let notification = scene.notification(UInt64(number), to: StoreScene.slot(UInt64(number)))
                scene.store.put(Envelope(notification), reason: .power, tag: nil)
            }
            let heard = await scene.witness.wait { $0.failed.count >= 1500 }
            #expect(Set(heard.failed.map(\.notification.id)).count == 1500)
            #expect(heard.failed.count == 1500)
            #expect(heard.stored.isEmpty)
            scene.fixture.setFailsWrites(false)
            try await untilWritable(scene)
            #expect(scene.holds(0))
        },
        Rule("a completion whose line cannot be written is refused") { (scene) async throws in
            scene.fixture.setFailsWrites(true)
            let event = JournalEvent(.discardedDisabled, scene.notification(1, to: StoreScene.slot(1)), at: scene.now)
            scene.store.record(event, settling: Completion(handler: scene.witness, number: 5))
            let heard = await scene.witness.wait { !$0.settled.isEmpty }
            #expect(heard.settled.map(\.number) == [5])
            #expect(heard.settled.map(\.outcome) == [.refused(.serviceUnavailable)])
            scene.fixture.setFailsWrites(false)
        },
        Rule("removals and lines are kept until they can be written") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let put = try #require(await scene.put(1, to: slot))
            scene.fixture.setFailsWrites(true)
            #expect(await scene.put(2, to: StoreScene.slot(2)) == nil)
            let event = JournalEvent(.deliveredFromStorage, put.envelope.notification, at: scene.now)
            scene.store.remove(slot, sequence: put.sequence, event: event)
            #expect(try await scene.waiting(slot) == [])
            #expect(await scene.put(3, to: StoreScene.slot(3)) == nil)
            scene.fixture.setFailsWrites(false)
            try await untilWritable(scene)
            #expect(try await scene.waiting(slot) == [])
            #expect(try await scene.states(1) == [.storedDeviceOffline, .deliveredFromStorage])
        },
        Rule("what is on disk can be read while nothing can be written") { (scene) async throws in
            await scene.put(1, to: StoreScene.slot(1))
            // A journal that is apart has the line soon.
            #expect(try await scene.states(1) == [.storedDeviceOffline])
            scene.fixture.setFailsWrites(true)
            #expect(await scene.put(2, to: StoreScene.slot(2)) == nil)
            #expect(try await scene.waiting(StoreScene.slot(1)) == [1])
            #expect(try await scene.states(1) == [.storedDeviceOffline])
            scene.fixture.setFailsWrites(false)
        },
    ]

    /// The same for the registry.
    static let registryTroubleRules: [Rule] = [
        Rule("a registration that cannot be written fails, and is not there") { (scene) async throws in
            scene.fixture.setFailsWrites(true)
            await #expect(throws: (any Error).self) {
                _ = try await scene.store.register(StoreScene.slot(1), at: scene.now)
            }
            scene.fixture.setFailsWrites(false)
            try await untilWritable(scene)
            #expect(try await scene.store.loadRegistry().registrations.isEmpty)
        }
    ]

    /// Waits until a change succeeds; the engine finds out by itself, from time to time, that it can write again.
    private static func untilWritable(_ scene: StoreScene) async throws {
        let device = try #require(DeviceID("probe"))
        while true {
            do {
                _ = try await scene.store.number(of: device)
                if scene.store.isAccepting { return }
                await Task.yield()
            } catch {
                await Task.yield()
            }
        }
    }
}
