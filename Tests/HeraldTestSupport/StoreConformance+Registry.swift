import HeraldMailbox
import HeraldModel
import Testing

extension StoreConformance {
    private static func app(_ name: String, _ environment: PushEnvironment = .production) throws -> App {
        App(topic: try #require(Topic(name)), environment: environment)
    }

    static let registryRules: [Rule] = [
        Rule("a device and an app keep their numbers") { (scene) async throws in
            let device = try #require(DeviceID("phone-1"))
            let first = try await scene.store.number(of: device)
            let other = try #require(DeviceID("phone-2"))
            #expect(try await scene.store.number(of: other) != first)
            #expect(try await scene.store.number(of: device) == first)
            let chat = try await scene.store.number(of: app("com.example.chat"))
            let sandbox = try await scene.store.number(of: app("com.example.chat", .sandbox))
            let call = try await scene.store.number(of: app("com.example.chat.voip"))
            #expect(Set([chat, sandbox, call]).count == 3)
            let again = try await scene.store.number(of: app("com.example.chat", .sandbox))
            #expect(again == sandbox)
        },
        Rule("concurrent requests for a number make one") { (scene) async throws in
            let device = try #require(DeviceID("phone"))
            let numbers = try await withThrowingTaskGroup(of: DeviceNumber.self) { group in
                for _ in 0..<50 { group.addTask { try await scene.store.number(of: device) } }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(numbers.count == 1)
        },
        Rule("a registration that is live stays as it is") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let made = try await scene.store.register(slot, at: scene.now)
            #expect(made == Registration(slot: slot, generation: made.generation, isLive: true, registered: scene.now))
            scene.clock.advance(by: .seconds(60))
            #expect(try await scene.store.register(slot, at: scene.now) == made)
        },
        Rule("nodes refuse what an older connection asks of a registration, and one process leaves that to its courier")
        {
            (scene) async throws in
            let store = scene.store
            let made = try await store.register(StoreScene.slot(1), at: scene.now, fence: 20)
            let isRefused: [Bool] = await [
                throwsNewerConnection { _ = try await store.register(made.slot, at: scene.now, fence: 10) },
                throwsNewerConnection { try await store.setEnabled(false, for: made.slot, fence: 10) },
                throwsNewerConnection { try await store.unregister(made.slot, at: scene.now, fence: 10) },
            ]
            #expect(isRefused == Array(repeating: store.shared != nil, count: 3))
            try await store.unregister(made.slot, at: scene.now, fence: 20)
            #expect(try await store.loadRegistry().registrations.map(\.isLive) == [false])
        },
        Rule("a registration that has ended is made again with another generation") { (scene) async throws in
            let slot = StoreScene.slot(1)
            let first = try await scene.store.register(slot, at: scene.now)
            scene.clock.advance(by: .seconds(60))
            let end = scene.now
            try await scene.store.unregister(slot, at: end)
            scene.clock.advance(by: .seconds(60))
            try await scene.store.unregister(slot, at: scene.now)
            var registrations = try await scene.store.loadRegistry().registrations
            #expect(registrations.map(\.isLive) == [false])
            #expect(registrations.map(\.ended) == [end])
            let second = try await scene.store.register(slot, at: scene.now)
            #expect(second.generation > first.generation)
            #expect(second.isLive)
            registrations = try await scene.store.loadRegistry().registrations
            #expect(registrations == [second])
        },
        Rule("what was sent to an ended registration is not the next one's") { (scene) async throws in
            let slot = StoreScene.slot(1)
            _ = try await scene.store.register(slot, at: scene.now)
            try await scene.store.unregister(slot, at: scene.now)
            // A post that was accepted before the end, and stored after it.
            await scene.put(1, to: slot)
            let next = try await scene.store.register(slot, at: scene.now)
            let registered = RegisteredSlot(slot, generation: next.generation)
            #expect(try await scene.store.waiting(in: [registered]).isEmpty)
        },
        Rule("the feedback list has one token of each ended registration, until it is made again") {
            (scene) async throws in
            let slot = StoreScene.slot(1)
            let first = try await scene.store.register(slot, at: scene.now)
            // A push that was on its way when the app was registered.
            try await scene.addFeedback(slot, generation: first.generation)
            try await scene.addFeedback(StoreScene.slot(9), generation: 0)
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [])
            try await scene.store.unregister(slot, at: scene.now)
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [])
            scene.clock.advance(by: .seconds(60))
            let record = FeedbackRecord(slot: slot, generation: first.generation, time: scene.now)
            try await scene.addFeedback(slot, generation: first.generation)
            scene.clock.advance(by: .seconds(60))
            try await scene.addFeedback(slot, generation: first.generation)
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [record])
            let second = try await scene.store.register(slot, at: scene.now)
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [])
            try await scene.store.unregister(slot, at: scene.now)
            try await scene.addFeedback(slot, generation: first.generation)
            try await scene.addFeedback(slot, generation: second.generation)
            try await scene.addFeedback(slot, generation: first.generation)
            let latest = FeedbackRecord(slot: slot, generation: second.generation, time: scene.now)
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [latest])
        },
        Rule("a device's latest ended registrations are kept, and no generation of a deleted one is reused") {
            (scene) async throws in
            let slots = (1...4).map { StoreScene.slot(1, $0) }
            for slot in slots { _ = try await scene.store.register(slot, at: scene.now) }
            try await scene.store.unregister(slots[0], at: scene.now)
            let again = try await scene.store.register(slots[0], at: scene.now)
            for slot in slots[..<3] {
                scene.clock.advance(by: .seconds(1))
                try await scene.store.unregister(slot, at: scene.now)
            }
            let other = StoreScene.slot(2, 1)
            _ = try await scene.store.register(other, at: scene.now)
            try await scene.store.unregister(other, at: scene.now)
            for slot in [slots[0], slots[1], other] { try await scene.addFeedback(slot, generation: 0) }
            let device = slots[0].device
            #expect(try await scene.store.forgetEnded(device, keeping: 3) == [])
            #expect(try await scene.store.forgetEnded(device, keeping: 1) == [slots[1], slots[0]])
            #expect(Set(try await scene.store.loadRegistry().registrations.map(\.slot)) == [slots[2], slots[3], other])
            for app in 1...2 {
                let feedback = try await scene.store.feedback(for: AppNumber(UInt32(app)), limit: 10)
                #expect(feedback.map(\.slot) == (app == 1 ? [other] : []))
            }
            #expect(try await scene.store.register(slots[0], at: scene.now).generation > again.generation)
        },
        Rule("ending an unknown registration changes nothing") { (scene) async throws in
            try await scene.store.unregister(StoreScene.slot(1), at: scene.now)
            #expect(try await scene.store.loadRegistry().registrations.isEmpty)
            #expect(try await scene.store.feedback(for: AppNumber(1), limit: 10) == [])
        },
        Rule("ending a registration deletes its stored notification") { (scene) async throws in
            let slot = StoreScene.slot(1)
            _ = try await scene.store.register(slot, at: scene.now)
            await scene.put(1, to: slot)
            await scene.put(2, to: StoreScene.slot(1, 2))
            scene.clock.advance(by: .seconds(1))
            try await scene.store.unregister(slot, at: scene.now)
            #expect(try await scene.waiting(slot, StoreScene.slot(1, 2)) == [2])
            let lines = try await scene.lines(1)
            #expect(lines.map(\.state) == [.storedDeviceOffline, .discardedUnregisteredFromStorage])
            #expect(lines.last?.time == scene.now)
            #expect(scene.holds(1))
        },
        Rule("ending a registration deletes an earlier put, and keeps a later one") {
            (scene) async throws in
            let slot = StoreScene.slot(1)
            _ = try await scene.store.register(slot, at: scene.now)
            let envelopes = (1...3).map { Envelope(scene.notification($0, to: slot)) }
            for envelope in envelopes { scene.store.put(envelope, reason: .deviceOffline, tag: nil) }
            // Where a journal is apart, one that comes later has no line, and expires unseen with its generation.
            if scene.journal == .separate { await scene.witness.wait { $0.stored.count == 3 } }
            try await scene.store.unregister(slot, at: scene.now)
            #expect(try await scene.waiting(slot) == [])
            _ = try await scene.store.register(slot, at: scene.now)
            await scene.put(4, to: slot)
            #expect(try await scene.waiting(slot) == [4])
            #expect(try await scene.states(2).first == .storedDeviceOffline)
            #expect(try await scene.states(3) == [.storedDeviceOffline, .discardedUnregisteredFromStorage])
        },
        Rule("the enabled state is kept until the app is installed again") { (scene) async throws in
            let slot = StoreScene.slot(1)
            try await scene.store.setEnabled(false, for: slot)
            #expect(try await scene.store.register(slot, at: scene.now).isEnabled)
            try await scene.store.setEnabled(false, for: slot)
            #expect(try await scene.store.register(slot, at: scene.now).isEnabled == false)
            try await scene.store.setEnabled(true, for: slot)
            #expect(try await scene.store.loadRegistry().registrations.map(\.isEnabled) == [true])
            try await scene.store.setEnabled(false, for: slot)
            try await scene.store.unregister(slot, at: scene.now)
            #expect(try await scene.store.register(slot, at: scene.now).isEnabled)
        },
        Rule("disabling notifications deletes the stored one, with a journal event") {
            (scene) async throws in
            let slot = StoreScene.slot(1)
            _ = try await scene.store.register(slot, at: scene.now)
            await scene.put(1, to: slot)
            await scene.put(2, to: StoreScene.slot(2))
            try await scene.store.setEnabled(true, for: slot)
            #expect(try await scene.waiting(slot) == [1])
            try await scene.store.setEnabled(false, for: slot)
            #expect(try await scene.waiting(slot, StoreScene.slot(2)) == [2])
            #expect(try await scene.states(1) == [.storedDeviceOffline, .discardedDisabledFromStorage])
        },
        Rule("a device's session and power saving state are kept") { (scene) async throws in
            let device = try await scene.store.number(of: try #require(DeviceID("phone")))
            #expect(try await scene.store.record(of: device) == DeviceRecord())
            let session = SessionRecord(
                subscriptions: ["apps/com.example.chat/#": 1, "apps/com.example.chat.voip": 0],
                expiryInterval: .max,
                disconnected: scene.now
            )
            try await scene.store.keep(session, for: device)
            try await scene.store.setSavingPower(true, for: device, fence: 1)
            #expect(
                try await scene.store.record(of: device) == DeviceRecord(isSavingPower: true, session: session)
            )
            try await scene.store.keep(nil, for: device)
            try await scene.store.setSavingPower(false, for: device, fence: 1)
            #expect(try await scene.store.record(of: device) == DeviceRecord())
        },
        Rule("feedback comes oldest first and bounded, and exactly the read records are cleared") {
            (scene) async throws in
            for device in 1...5 {
                let slot = StoreScene.slot(UInt64(device))
                let registration = try await scene.store.register(slot, at: scene.now)
                try await scene.store.unregister(slot, at: scene.now)
                try await scene.addFeedback(slot, generation: registration.generation)
                scene.clock.advance(by: .seconds(1))
            }
            let read = try await scene.store.feedback(for: AppNumber(1), limit: 3)
            #expect(read.map(\.slot.device.value) == [1, 2, 3])
            let again = try await scene.store.register(StoreScene.slot(1), at: scene.now)
            try await scene.store.unregister(StoreScene.slot(1), at: scene.now)
            try await scene.addFeedback(StoreScene.slot(1), generation: again.generation)
            try await scene.store.clearFeedback(read)
            let left = try await scene.store.feedback(for: AppNumber(1), limit: 10)
            #expect(left.map(\.slot.device.value) == [4, 5, 1])
            #expect(try await scene.store.feedback(for: AppNumber(2), limit: 10) == [])
        },
        Rule("the registry is loaded completely, also after a restart", needsDurability: true) { (scene) async throws in
            let device = try #require(DeviceID("phone"))
            let chat = try app("com.example.chat", .sandbox)
            let slot = Slot(
                device: try await scene.store.number(of: device),
                app: try await scene.store.number(of: chat)
            )
            let registration = try await scene.store.register(slot, at: scene.now)
            try await scene.restart()
            let snapshot = try await scene.store.loadRegistry()
            #expect(snapshot.devices.map(\.0) == [device])
            #expect(snapshot.devices.map(\.1) == [slot.device])
            #expect(snapshot.apps.map(\.app) == [chat])
            #expect(snapshot.apps.map(\.number) == [slot.app])
            #expect(snapshot.registrations == [registration])
            let other = try #require(DeviceID("other"))
            #expect(try await scene.store.number(of: other) != slot.device)
        },
        Rule("an app that is forgotten leaves nothing but its number") { (scene) async throws in
            let device = try await scene.store.number(of: try #require(DeviceID("phone")))
            let (mail, chat) = (try app("com.example.mail"), try app("com.example.chat", .sandbox))
            let origins: [App: AppOrigin] = [mail: .device(device), chat: .team("TEAM123456")]
            var numbers: [App: AppNumber] = [:]
            for (app, origin) in origins {
                numbers[app] = try await scene.store.number(of: app, for: origin, at: scene.now)
            }
            let slot = Slot(device: device, app: try #require(numbers[mail]))
            _ = try await scene.store.register(slot, at: scene.now)
            let channel = ChannelScene.id(1)
            try await scene.store.createChannel(
                BroadcastChannel(id: channel, app: try #require(numbers[chat]), storage: .none, created: scene.now)
            )
            var usages = try await scene.store.appUsages(nil)
            #expect(usages.map(\.record.app) == [chat, mail])
            #expect(usages.map(\.record.origin) == [origins[chat], origins[mail]])
            #expect(usages.map(\.record.created) == [scene.now, scene.now])
            #expect(usages.map { [$0.devices, $0.channels] } == [[0, 1], [1, 0]])
            #expect(usages.map(\.isUnused) == [false, false])
            try await scene.store.unregister(slot, at: scene.now)
            try await scene.addFeedback(slot, generation: 0)
            // A notification on its way while the app was removed.
            await scene.put(1, to: slot)
            usages = try await scene.store.appUsages(slot.app)
            #expect(usages.map { [$0.devices, $0.channels] } == [[0, 0]])
            #expect(try await scene.store.forgetApp(slot.app, at: scene.now) == [slot])
            #expect(try await scene.states(1) == [.storedDeviceOffline, .discardedUnregisteredFromStorage])
            #expect(try await scene.store.feedback(for: slot.app, limit: 10) == [])
            let snapshot = try await scene.store.loadRegistry()
            #expect(snapshot.apps.map(\.app) == [chat])
            #expect(snapshot.registrations.isEmpty)
            #expect(try await scene.store.number(of: mail) != slot.app)
        },
        Rule("a thousand registrations at once") { (scene) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for device in 1...1000 {
                    group.addTask {
                        _ = try await scene.store.register(StoreScene.slot(UInt64(device)), at: scene.now)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await scene.store.loadRegistry().registrations.count == 1000)
        },
    ]
}

extension RegistryStore {
    fileprivate func number(of app: App) async throws -> AppNumber {
        try await number(of: app, for: nil, at: WallTime(milliseconds: 0))
    }

    fileprivate func keep(_ session: SessionRecord?, for device: DeviceNumber) async throws {
        try await withCheckedThrowingContinuation { continuation in
            setSession(session, for: device, fence: 1) { continuation.resume(with: $0) }
        }
    }

    /// The record, without its place.
    fileprivate func record(of device: DeviceNumber) async throws -> DeviceRecord {
        var record = try await deviceRecord(device)
        record.sequence = nil
        return record
    }
}

private func throwsNewerConnection(_ body: () async throws -> Void) async -> Bool {
    do { try await body() } catch { return error is NewerConnection }
    return false
}
