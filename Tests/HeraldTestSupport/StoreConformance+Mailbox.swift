import HeraldMailbox
import HeraldModel
import Testing

extension StoreConformance {
    static let storageRules: [Rule] = [
        Rule("a notification is read back as it was put") { (scene) async throws in
            let slot = StoreScene.slot(1 << 63 | 5, .max)
            let notification = Notification(
                id: NotificationID(high: .max, low: 1),
                uniqueID: NotificationID(high: 2, low: .max),
                slot: slot,
                received: scene.now,
                storedUntil: scene.now + .milliseconds(12_345),
                priority: .conserving,
                pushType: .voip,
                collapseID: CollapseID("größer"),
                payload: (0..<5120).map { UInt8(truncatingIfNeeded: $0) }
            )
            let put = await scene.put(notification)
            let found = try await scene.store.waiting(in: [slot])
            #expect(found.map(\.sequence) == [put?.sequence])
            let kept = try #require(found.first?.notification)
            #expect(kept.id == notification.id)
            #expect(kept.uniqueID == notification.uniqueID)
            #expect(kept.slot == notification.slot)
            #expect(kept.received == notification.received)
            #expect(kept.storedUntil == notification.storedUntil)
            #expect(kept.priority == notification.priority)
            #expect(kept.pushType == notification.pushType)
            #expect(kept.collapseID == notification.collapseID)
            #expect(kept.payload == notification.payload)
        },
        Rule("every push type, every priority and an empty payload are read back") { (scene) async throws in
            for (number, pushType) in PushType.allCases.enumerated() {
                let slot = StoreScene.slot(UInt64(number))
                let notification = Notification(
                    id: NotificationID(high: 0xA, low: UInt64(number)),
                    uniqueID: NotificationID(high: 0xB, low: UInt64(number)),
                    slot: slot,
                    received: scene.now,
                    storedUntil: scene.now + .seconds(60),
                    priority: Priority.allCases[number % Priority.allCases.count],
                    pushType: pushType,
                    collapseID: nil,
                    payload: []
                )
                await scene.put(notification)
                let found = try #require(try await scene.store.waiting(in: [slot]).first).notification
                #expect(found.pushType == pushType)
                #expect(found.priority == notification.priority)
                #expect(found.collapseID == nil)
                #expect(found.payload.isEmpty)
            }
        },
        Rule("a new notification has its event `received` first, with the time of receipt") {
            (scene) async throws in
            let notification = scene.notification(1, to: StoreScene.slot(1))
            scene.clock.advance(by: .seconds(1))
            scene.store.put(Envelope(notification), reason: .power, tag: nil, isNew: true)
            await scene.witness.wait { $0.stored.count == 1 }
            let lines = try await scene.lines(1)
            #expect(lines.map(\.state) == [.received, .storedPower])
            #expect(lines.map(\.time) == [notification.received, scene.now])
        },
        Rule("replacing neighbours together deletes no other notification") { (scene) async throws in
            for number in 1...12 as ClosedRange<UInt64> { await scene.put(number, to: StoreScene.slot(number)) }
            let replaced: [UInt64] = [9, 2, 4, 3, 12, 7, 10]
            for number in replaced {
                let newer = scene.notification(100 + number, to: StoreScene.slot(number))
                scene.store.put(Envelope(newer), reason: .deviceOffline, tag: nil)
            }
            await scene.witness.wait { $0.stored.count == 12 + replaced.count }
            let found = try await scene.store.waiting(in: (1...12).map { StoreScene.slot($0) })
            #expect(found.map(\.notification.id.low) == [1, 5, 6, 8, 11] + replaced.map { 100 + $0 })
        },
        Rule("the newest of a slot is kept") { (scene) async throws in
            let slot = StoreScene.slot(1)
            await scene.put(1, to: slot)
            await scene.put(2, to: slot)
            #expect(try await scene.waiting(slot) == [2])
            #expect(scene.holds(1))
        },
        Rule("the newest of a slot is kept among concurrent puts") { (scene) async throws in
            let slot = StoreScene.slot(1)
            for number in 1...20 {
                scene.store.put(Envelope(scene.notification(UInt64(number), to: slot)), reason: .power, tag: nil)
            }
            let heard = await scene.witness.wait { $0.stored.count == 20 }
            #expect(heard.stored.map(\.envelope.notification.id.low) == Array(1...20))
            #expect(StoreScene.sequencesRise(heard.stored))
            #expect(try await scene.waiting(slot) == [20])
            #expect(scene.holds(1))
        },
        Rule("slots are independent, and notifications are read in the order of their puts") { (scene) async throws in
            let slots = [StoreScene.slot(1, 1), StoreScene.slot(1, 2), StoreScene.slot(2, 1)]
            for (number, slot) in zip(1..., slots) { await scene.put(UInt64(number), to: slot) }
            #expect(try await scene.waiting(slots[2], slots[0]) == [1, 3])
            #expect(try await scene.waiting(slots[1]) == [2])
            #expect(try await scene.waiting(StoreScene.slot(9)) == [])
            #expect(scene.holds(3))
        },
        Rule("a report has the tag of its put") { (scene) async throws in
            let tag = PutTag(fence: 7, delivery: DeliveryNumber(index: 3, stamp: 4))
            let envelope = Envelope(scene.notification(1, to: StoreScene.slot(1)))
            scene.store.put(envelope, reason: .unacknowledged, tag: tag)
            let heard = await scene.witness.wait { !$0.stored.isEmpty }
            #expect(heard.stored.map(\.tag) == [tag])
        },
        Rule("a removed notification is not found any more, at once") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let put = try #require(await scene.put(1, to: slot))
            let event = JournalEvent(.deliveredFromStorage, put.envelope.notification, at: scene.now)
            scene.store.remove(slot, sequence: put.sequence, event: event)
            #expect(try await scene.waiting(slot) == [])
            #expect(scene.holds(0))
            #expect(try await scene.states(1) == [.storedDeviceOffline, .deliveredFromStorage])
        },
        Rule("removing an older notification never removes the newer one") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let older = try #require(await scene.put(1, to: slot))
            await scene.put(2, to: slot)
            let event = JournalEvent(.deliveredFromStorage, older.envelope.notification, at: scene.now)
            scene.store.remove(slot, sequence: older.sequence, event: event)
            #expect(try await scene.waiting(slot) == [2])
            #expect(try await scene.states(1) == scene.recorded(.storedDeviceOffline, .replaced, .deliveredFromStorage))
        },
        Rule("removing twice is harmless, and a removal without an event records none") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let put = try #require(await scene.put(1, to: slot))
            scene.store.remove(slot, sequence: put.sequence, event: nil)
            scene.store.remove(slot, sequence: put.sequence, event: nil)
            scene.store.remove(slot, sequence: put.sequence + 1, event: nil)
            await scene.put(2, to: slot)
            #expect(try await scene.waiting(slot) == [2])
            #expect(try await scene.states(1) == [.storedDeviceOffline])
        },
        Rule("a put records that it stored and replaced", needsTransactions: true) { (scene) async throws in
            let slot = StoreScene.slot(1)
            await scene.put(scene.notification(1, to: slot), reason: .backlog)
            scene.clock.advance(by: .seconds(5))
            await scene.put(scene.notification(2, to: slot), reason: .power)
            let lines = try await scene.lines(1)
            #expect(lines.map(\.state) == [.storedBacklog, .replaced])
            #expect(lines.last?.replacement == NotificationID(high: 0xA, low: 2))
            #expect(lines.map(\.uniqueID) == Array(repeating: NotificationID(high: 0xB, low: 1), count: 2))
            #expect(lines.map(\.device) == [slot.device, slot.device] && lines.map(\.app) == [slot.app, slot.app])
            #expect(lines.last?.time == scene.now)
            #expect(try await scene.states(2) == [.storedPower])
        },
        Rule("replacements within one commit are recorded too", needsTransactions: true) { (scene) async throws in
            let slot = StoreScene.slot(1)
            for number in 1...3 {
                scene.store.put(Envelope(scene.notification(UInt64(number), to: slot)), reason: .power, tag: nil)
            }
            await scene.witness.wait { $0.stored.count == 3 }
            #expect(try await scene.states(1) == [.storedPower, .replaced])
            #expect(try await scene.states(2) == [.storedPower, .replaced])
            #expect(try await scene.states(3) == [.storedPower])
            #expect(try await scene.lines(2).last?.replacement == NotificationID(high: 0xA, low: 3))
        },
        Rule("expired notifications are removed in bounded steps, each with an event", needsTransactions: true) {
            (scene) async throws in
            for number in 1...10 {
                await scene.put(UInt64(number), to: StoreScene.slot(UInt64(number)), for: .seconds(9))
            }
            await scene.put(11, to: StoreScene.slot(11), for: .seconds(11))
            let moment = scene.now + .seconds(9)
            #expect(try await scene.store.removeExpired(at: moment - .milliseconds(1), limit: 100) == 0)
            #expect(try await scene.store.removeExpired(at: moment, limit: 4) == 4)
            #expect(scene.holds(7))
            #expect(try await scene.store.removeExpired(at: moment, limit: 100) == 6)
            #expect(try await scene.store.removeExpired(at: moment, limit: 100) == 0)
            #expect(try await scene.waiting(StoreScene.slot(1), StoreScene.slot(11)) == [11])
            for number in 1...10 {
                let lines = try await scene.lines(UInt64(number))
                #expect(lines.map(\.state) == [.storedDeviceOffline, .discardedExpiredFromStorage])
                #expect(lines.last?.time == moment)
            }
        },
        Rule("the expiry of a replaced notification does not affect its successor", needsTransactions: true) {
            (scene) async throws in
            let slot = StoreScene.slot(1)
            await scene.put(1, to: slot, for: .seconds(10))
            await scene.put(2, to: slot, for: .seconds(100))
            #expect(try await scene.store.removeExpired(at: scene.now + .seconds(50), limit: 10) == 0)
            #expect(try await scene.waiting(slot) == [2])
            #expect(try await scene.store.removeExpired(at: scene.now + .seconds(40_000_000), limit: 10) == 1)
            #expect(try await scene.waiting(slot) == [])
        },
        Rule("two thousand slots at once") { (scene) async throws in
            for number in 1...4000 {
                let slot = StoreScene.slot(UInt64(number % 2000))
                scene.store.put(Envelope(scene.notification(UInt64(number), to: slot)), reason: .power, tag: nil)
            }
            let heard = await scene.witness.wait { $0.stored.count == 4000 }
            let lasting = heard.stored.filter { !$0.isReplaced }
            #expect(Set(lasting.map(\.sequence)).count == lasting.count)
            let slots = (0..<2000).map { StoreScene.slot(UInt64($0)) }
            let found = try await scene.waitingAtLast(slots).map(\.notification.id.low)
            #expect(found == Array(2001...4000))
            for put in heard.stored where put.envelope.notification.id.low > 2000 {
                scene.store.remove(put.envelope.notification.slot, sequence: put.sequence, event: nil)
            }
            #expect(try await scene.waitingAtLast(slots).isEmpty)
        },
        Rule("puts from many threads are each reported once, and a slot has its last reported one") {
            (scene) async throws in
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<8 {
                    group.addTask {
                        for turn in 0..<250 {
                            let slot = StoreScene.slot(UInt64(turn % 10))
                            let notification = scene.notification(UInt64(thread * 1000 + turn), to: slot)
                            scene.store.put(Envelope(notification), reason: .deviceOffline, tag: nil)
                        }
                    }
                }
            }
            let heard = await scene.witness.wait { $0.stored.count == 2000 }
            #expect(Set(heard.stored.map(\.envelope.notification.id)).count == 2000)
            let slots = Dictionary(grouping: heard.stored) { $0.envelope.notification.slot }
            #expect(slots.values.allSatisfy(StoreScene.sequencesRise))
            var last: [Slot: UInt64] = [:]
            for put in heard.stored { last[put.envelope.notification.slot] = put.envelope.notification.id.low }
            for (slot, number) in last { #expect(try await scene.waiting(slot) == [number]) }
        },
        Rule("a restart keeps all notifications, and none that was removed or replaced", needsDurability: true) {
            (scene) async throws in
            await scene.put(1, to: StoreScene.slot(1))
            let removed = try #require(await scene.put(2, to: StoreScene.slot(2)))
            await scene.put(3, to: StoreScene.slot(3))
            let newest = try #require(await scene.put(4, to: StoreScene.slot(3)))
            scene.store.remove(StoreScene.slot(2), sequence: removed.sequence, event: nil)
            try await scene.restart()
            #expect(scene.holds(2))
            #expect(try await scene.waiting(StoreScene.slot(1), StoreScene.slot(2), StoreScene.slot(3)) == [1, 4])
            #expect(try await scene.states(3) == scene.recorded(.storedDeviceOffline, .replaced))
            let next = try #require(await scene.put(5, to: StoreScene.slot(3)))
            #expect(next.sequence > newest.sequence)
            #expect(try await scene.states(4) == scene.recorded(.storedDeviceOffline, .replaced))
            let expired = try await scene.store.removeExpired(at: scene.now + .seconds(3600), limit: 10)
            #expect(expired == (scene.expiresByItself ? 0 : 2))
        },
        Rule("a sequence is never reused, even if the newest was removed", needsDurability: true) {
            (scene) async throws in
            let put = try #require(await scene.put(1, to: StoreScene.slot(1)))
            scene.store.remove(StoreScene.slot(1), sequence: put.sequence, event: nil)
            try await scene.restart()
            #expect(scene.holds(0))
            let next = try #require(await scene.put(2, to: StoreScene.slot(1)))
            #expect(next.sequence > put.sequence)
        },
    ]
}

extension StoreScene {
    /// The stored notifications of many slots.
    ///
    /// A read from a server on a busy machine may fail, and is repeated, as the post office does.
    fileprivate func waitingAtLast(_ slots: [Slot]) async throws -> [StoredNotification] {
        for _ in 0..<5 {
            if let found = try? await store.waiting(in: slots) { return found }
        }
        return try await store.waiting(in: slots)
    }
}
