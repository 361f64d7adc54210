import HeraldMailbox
import HeraldModel
import Testing

extension StoreConformance {
    static let journalRules: [Rule] = [
        Rule("an event is found by both identifiers, by device and by app") { (scene) async throws in
            let slot = StoreScene.slot(7, 9)
            let replacement = NotificationID(high: 3, low: 4)
            let notification = scene.notification(1, to: slot)
            let event = JournalEvent(.replaced, notification, at: scene.now, replacement: replacement)
            let other = JournalEvent(.received, scene.notification(2, to: StoreScene.slot(8, 8)), at: scene.now)
            scene.store.record([event, other])
            let queries: [JournalQuery] = [
                .notification(notification.id), .notification(notification.uniqueID), .device(slot.device),
                .app(slot.app),
            ]
            for query in queries { #expect(try await scene.store.lines(matching: query, limit: 10) == [event]) }
            #expect(try await scene.store.lines(matching: .app(AppNumber(1)), limit: 10) == [])
            let unknown = NotificationID(high: 0, low: 0)
            #expect(try await scene.store.lines(matching: .notification(unknown), limit: 10) == [])
        },
        Rule("every state is read back") { (scene) async throws in
            let notification = scene.notification(1, to: StoreScene.slot(1))
            let events = JournalState.allCases.map { JournalEvent($0, notification, at: scene.now) }
            scene.store.record(events)
            #expect(try await scene.store.lines(matching: .notification(notification.id), limit: 100) == events)
        },
        Rule("events come oldest first, and a limit keeps the newest") { (scene) async throws in
            let slot = StoreScene.slot(1)
            for number in 1...600 {
                let notification = scene.notification(UInt64(number), to: slot)
                scene.store.record(JournalEvent(.received, notification, at: scene.now), settling: nil)
                if number % 50 == 0 { _ = try await scene.lines(1) }
            }
            let all = try await scene.store.lines(matching: .device(slot.device), limit: 1000)
            #expect(all.map(\.id.low) == Array(1...600))
            let newest = try await scene.store.lines(matching: .device(slot.device), limit: 130)
            #expect(newest.map(\.id.low) == Array(471...600))
            #expect(try await scene.store.lines(matching: .device(slot.device), limit: 0) == [])
        },
        Rule("a completion is settled once, when its event is durable") { (scene) async throws in
            for number in 1...100 {
                let event = JournalEvent(
                    .discardedDisabled,
                    scene.notification(UInt64(number), to: StoreScene.slot(1)),
                    at: scene.now
                )
                scene.store.record(event, settling: Completion(handler: scene.witness, number: UInt64(number)))
            }
            let heard = await scene.witness.wait { $0.settled.count >= 100 }
            #expect(heard.settled.map(\.number) == Array(1...100))
            #expect(heard.settled.allSatisfy { $0.outcome == .accepted })
            #expect(try await scene.states(100) == [.discardedDisabled])
            #expect(scene.witness.heard.settled.count == 100)
        },
        Rule("events before a moment are deleted") { (scene) async throws in
            let slot = StoreScene.slot(1)
            for number in 1...50 {
                let notification = scene.notification(UInt64(number), to: slot)
                scene.store.record([JournalEvent(.received, notification, at: scene.now)])
                // Wherever an engine keeps lines in groups, each is in one of its own.
                _ = try await scene.lines(UInt64(number))
                scene.clock.advance(by: .seconds(1))
            }
            try await scene.store.trim(before: scene.now - .seconds(20), maximumBytes: 1 << 20)
            let left = try await scene.store.lines(matching: .device(slot.device), limit: 100)
            #expect(left.map(\.id.low) == Array(31...50))
        },
        Rule("the oldest events beyond a size are deleted") { (scene) async throws in
            let slot = StoreScene.slot(1)
            for number in 1...200 {
                let notification = scene.notification(UInt64(number), to: slot)
                scene.store.record([JournalEvent(.received, notification, at: scene.now)])
                if number % 10 == 0 { _ = try await scene.lines(UInt64(number)) }
            }
            try await scene.store.trim(before: scene.now - .seconds(1), maximumBytes: 4000)
            let left = try await scene.store.lines(matching: .device(slot.device), limit: 1000).map(\.id.low)
            #expect(left.last == 200)
            #expect((50...150).contains(left.count))
            #expect(left == Array(UInt64(201 - left.count)...200))
        },
        Rule("the journal survives a restart, and goes on", needsDurability: true) { (scene) async throws in
            let slot = StoreScene.slot(1)
            scene.store.record([JournalEvent(.received, scene.notification(1, to: slot), at: scene.now)])
            try await scene.restart()
            scene.store.record([JournalEvent(.delivered, scene.notification(1, to: slot), at: scene.now)])
            #expect(try await scene.states(1) == [.received, .delivered])
        },
    ]
}
