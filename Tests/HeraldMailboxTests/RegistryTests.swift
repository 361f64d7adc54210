import HeraldModel
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldMailbox

@Suite struct RegistryTests {
    /// A registry on a store in memory, with one device.
    struct Scene {
        let clock = ManualClock()
        let directory = SingleNodeDirectory()
        let log = LogNotes()
        let configuration: RegistryConfiguration
        let store: MemoryStore
        let postOffice: PostOffice
        let registry: Registry
        let device: DeviceNumber

        init(_ adjust: (inout RegistryConfiguration) -> Void = { _ in }) async throws {
            var configuration = RegistryConfiguration()
            adjust(&configuration)
            self.configuration = configuration
            store = MemoryStore(clock: clock)
            postOffice = PostOffice(
                clock: clock,
                store: store,
                directory: directory,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            registry = Registry(
                configuration: configuration,
                store: store,
                postOffice: postOffice,
                directory: directory,
                clock: clock,
                logger: log.logger
            )
            device = try await registry.arrive(try #require(DeviceID("device"))).number
        }

        /// A registry that starts on the same store.
        func restarted() async throws -> Registry {
            let registry = Registry(
                configuration: configuration,
                store: store,
                postOffice: postOffice,
                directory: directory,
                clock: clock,
                logger: log.logger
            )
            try await registry.load()
            return registry
        }

        /// - Returns: What each app came to: nil if it is registered.
        func register(
            _ apps: [App],
            on other: DeviceNumber? = nil,
            by later: Registry? = nil
        ) async throws -> [RegistrationRefusal?] {
            let results = await (later ?? registry).register(apps, on: other ?? device)
            return try apps.map { app in
                switch try #require(results[app]) {
                case .success(let registration):
                    #expect(postOffice.registration(registration.slot) == registration)
                    return nil
                case .failure(let error):
                    return try #require(error as? RegistrationRefusal)
                }
            }
        }

        func slot(_ app: App) throws -> Slot {
            Slot(device: device, app: try #require(registry.number(of: app)))
        }
    }

    private func apps(_ numbers: ClosedRange<Int>) throws -> [App] {
        try numbers.map { App(topic: try #require(Topic("com.example.app\($0)")), environment: .production) }
    }

    @Test(.timeLimit(.minutes(10)))
    func `apps of one call are registered and removed concurrently`() async throws {
        let scene = try await Scene()
        let apps = try apps(1...200)
        // Of 200 that waited for each other in vain, none would ever come back.
        await scene.store.meeting.setSize(200)
        #expect(try await scene.register(apps).allSatisfy { $0 == nil })
        let slots = Set(try apps.map(scene.slot))
        let removed = await scene.registry.unregister(slots)
        #expect(try slots.allSatisfy { try #require(removed[$0]).get() })
        #expect(slots.allSatisfy { scene.postOffice.registration($0)?.isLive == false })
    }

    @Test func `past the limit of a device the first apps are registered`() async throws {
        let scene = try await Scene { $0.appsPerDevice = 3 }
        let apps = try apps(1...5)
        #expect(try await scene.register([apps[0], apps[0]]) == [nil, nil])
        let refusal = RegistrationRefusal.tooManyAppsOnDevice
        #expect(
            try await scene.register([apps[1], apps[0], apps[2], apps[3], apps[4]]) == [
                nil, nil, nil, refusal, refusal,
            ]
        )
        // A registration that goes makes room for one.
        #expect(try await scene.registry.unregister([scene.slot(apps[1])])[scene.slot(apps[1])]?.get() == true)
        #expect(try await scene.registry.unregister([scene.slot(apps[1])])[scene.slot(apps[1])]?.get() == false)
        #expect(try await scene.register([apps[3], apps[4]]) == [nil, refusal])
    }

    @Test func `a refused app leaves its room to the next`() async throws {
        let scene = try await Scene {
            $0.appsPerDevice = 2
            $0.apps = 3
        }
        let apps = try apps(1...5)
        #expect(try await scene.register([apps[0], apps[1]]) == [nil, nil])
        _ = await scene.registry.unregister([try scene.slot(apps[0])])
        _ = try await scene.registry.withNumber(of: apps[2], for: nil) { $0 }
        #expect(try await scene.register([apps[3], apps[4], apps[2]]) == [.tooManyApps, .tooManyApps, nil])
    }

    @Test func `concurrent calls do not exceed the limit of apps`() async throws {
        let scene = try await Scene { $0.apps = 3 }
        let results = try await scene.register(try apps(1...5))
        #expect(results.count { $0 == nil } == 3)
        #expect(results.count { $0 == .tooManyApps } == 2)
    }

    @Test func `a failing store registers nothing, removes nothing and uses no room`() async throws {
        let scene = try await Scene { $0.appsPerDevice = 2 }
        let apps = try apps(1...2)
        scene.store.setFailsWrites(true)
        for result in await scene.registry.register(apps, on: scene.device).values {
            #expect(throws: MemoryStore.WriteFailure.self) { try result.get() }
        }
        scene.store.setFailsWrites(false)
        #expect(try await scene.register(apps) == [nil, nil])
        scene.store.setFailsWrites(true)
        let slots = Set(try apps.map(scene.slot))
        for result in await scene.registry.unregister(slots).values {
            #expect(throws: MemoryStore.WriteFailure.self) { try result.get() }
        }
        #expect(slots.allSatisfy { scene.postOffice.registration($0)?.isLive == true })
    }

    @Test func `past the limit ended registrations are forgotten, in memory and in the store`() async throws {
        let scene = try await Scene {
            $0.appsPerDevice = 5
            $0.endedAppsPerDevice = 2
        }
        let apps = try apps(1...6)
        for _ in 1...3 {
            #expect(try await scene.register(Array(apps.prefix(5))).allSatisfy { $0 == nil })
            #expect(try await scene.register([apps[5]]) == [.tooManyAppsOnDevice])
            let slots = Set(try apps.prefix(5).map(scene.slot))
            _ = await scene.registry.unregister(slots)
            let remembered = Set(slots.filter { scene.postOffice.registration($0) != nil })
            #expect(remembered.count == 2)
            #expect(Set(try await scene.store.loadRegistry().registrations.map(\.slot)) == remembered)
        }
    }

    // MARK: - Feedback

    @Test func `a removed app is on the feedback list from its first notification on`() async throws {
        let scene = try await Scene()
        let app = try apps(1...1)[0]
        #expect(try await scene.register([app]) == [nil])
        let slot = try scene.slot(app)
        func post(_ generation: UInt32) -> PostDecision {
            let notification = Notification(
                id: NotificationID(high: 1, low: 1),
                uniqueID: NotificationID(high: 2, low: 1),
                slot: slot,
                received: scene.clock.now(),
                storedUntil: nil,
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: Array("{}".utf8)
            )
            return scene.postOffice.post(Envelope(notification, generation: generation))
        }
        func list() async throws -> [FeedbackRecord] {
            try await scene.registry.feedback(for: slot.app, limit: 10)
        }
        let first = try #require(scene.postOffice.registration(slot)).generation
        _ = await scene.registry.unregister([slot])
        let removed = scene.clock.now()
        #expect(try await list() == [])
        scene.clock.advance(by: .seconds(60))
        let met = scene.clock.now()
        #expect(post(first) == .refused(.unregistered, since: removed))
        scene.clock.advance(by: .seconds(60))
        #expect(post(first) == .refused(.unregistered, since: removed))
        let record = FeedbackRecord(slot: slot, generation: first, time: met)
        #expect(try await list() == [record])
        // A provider that goes on after it has read the list finds the token on the next.
        try await scene.registry.clearFeedback([record])
        #expect(try await list() == [])
        #expect(post(first) == .refused(.unregistered, since: removed))
        #expect(try await list().map(\.time) == [scene.clock.now()])
        // An app that is back has another token, and its former one is not listed.
        #expect(try await scene.register([app]) == [nil])
        #expect(post(first) == .refused(.unregistered, since: removed))
        #expect(try await list() == [])
        _ = await scene.registry.unregister([slot])
        #expect(post(first) == .refused(.unregistered, since: scene.clock.now()))
        #expect(try await list().map(\.generation) == [first])
    }

    @Test func `a token that the store could not list is listed by the next notification`() async throws {
        let scene = try await Scene()
        let slot = Slot(device: scene.device, app: AppNumber(1))
        let recorder = FeedbackRecorder(store: scene.store, logger: scene.log.logger)
        _ = try await scene.store.register(slot, at: scene.clock.now())
        try await scene.store.unregister(slot, at: scene.clock.now())
        let record = FeedbackRecord(slot: slot, generation: 0, time: scene.clock.now())
        scene.store.setFailsWrites(true)
        recorder.add(record)
        scene.store.setFailsWrites(false)
        #expect(try await scene.store.feedback(for: slot.app, limit: 9) == [])
        #expect(scene.log.all.count == 1)
        recorder.add(record)
        #expect(try await scene.store.feedback(for: slot.app, limit: 9) == [record])
    }

    // MARK: - Budgets of names

    /// Registers and removes apps one after the other, and says how many were granted.
    private func bring(_ numbers: ClosedRange<Int>, in scene: Scene, by later: Registry? = nil) async throws -> Int {
        var granted = 0
        for app in try apps(numbers) {
            guard try await scene.register([app], by: later) == [nil] else { continue }
            granted += 1
            _ = await scene.registry.unregister([try scene.slot(app)])
        }
        return granted
    }

    @Test func `a device that brings more names than its budget is refused, and others are not`() async throws {
        let scene = try await Scene {
            $0.newNames = 5
            $0.newNamesPerDay = 3
        }
        #expect(try await bring(1...10, in: scene) == 3)
        #expect(try await scene.register(try apps(9...9)) == [.tooManyNewNames])
        // Names that are known cost nothing, and another device has its own budget.
        #expect(try await scene.register(try apps(1...3)) == [nil, nil, nil])
        let other = try await scene.registry.arrive(try #require(DeviceID("other"))).number
        #expect(try await scene.register(try apps(9...10), on: other) == [nil, nil])
        #expect(try await scene.register(try apps(9...10)) == [nil, nil])
        let line = "new app names are refused: as many as one device or team may bring, in all or within a day"
        #expect(scene.log.all == [line + " by=device device"])
        // The next day there are names again, until there are as many as in all.
        scene.clock.advance(by: .seconds(86_400))
        #expect(try await bring(11...20, in: scene) == 2)
        scene.clock.advance(by: .seconds(86_400))
        #expect(try await bring(21...30, in: scene) == 0)
        #expect(scene.log.all.count == 3)
    }

    @Test func `budgets hold after a restart, and a name that is forgotten goes back`() async throws {
        let scene = try await Scene {
            $0.newNames = 4
            $0.newNamesPerDay = 3
        }
        #expect(try await bring(1...9, in: scene) == 3)
        let registry = try await scene.restarted()
        #expect(try await scene.register(try apps(4...4), by: registry) == [.tooManyNewNames])
        scene.clock.advance(by: .seconds(86_401))
        #expect(try await scene.register(try apps(4...5), by: registry).filter { $0 == nil }.count == 1)
        #expect(try await registry.forget(try apps(1...1)[0])?.isUnused == true)
        #expect(try await scene.register(try apps(6...6), by: registry) == [nil])
        #expect(try await scene.register(try apps(7...7), by: registry) == [.tooManyNewNames])
    }

    @Test func `a team has a budget for the apps of its channels, and a certificate's apps need none`() async throws {
        let scene = try await Scene { $0.newNames = 2 }
        let apps = try apps(1...5)
        for app in apps[..<2] { _ = try await scene.registry.withNumber(of: app, for: .team("TEAM000001")) { $0 } }
        await #expect(throws: RegistrationRefusal.tooManyNewNames) {
            try await scene.registry.withNumber(of: apps[2], for: .team("TEAM000001")) { $0 }
        }
        #expect(scene.log.all.map { $0.hasSuffix(" by=team TEAM000001") } == [true])
        for app in apps { _ = try await scene.registry.withNumber(of: app, for: nil) { $0 } }
        _ = try await scene.registry.withNumber(of: apps[2], for: .team("TEAM000001")) { $0 }
    }

    @Test func `a name that the store could not make costs nothing`() async throws {
        let scene = try await Scene { $0.newNames = 1 }
        let apps = try apps(1...2)
        scene.store.setFailsWrites(true)
        _ = await scene.registry.register(apps, on: scene.device)
        scene.store.setFailsWrites(false)
        #expect(try await scene.register(apps).count { $0 == nil } == 1)
    }

    @Test func `when no name is left, the log says who used them up`() async throws {
        let scene = try await Scene { $0.apps = 3 }
        #expect(try await bring(1...2, in: scene) == 2)
        _ = try await scene.registry.withNumber(of: try apps(3...3)[0], for: .team("TEAM000001")) { $0 }
        let victim = try await scene.registry.arrive(try #require(DeviceID("victim"))).number
        for _ in 1...3 { #expect(try await scene.register(try apps(4...4), on: victim) == [.tooManyApps]) }
        #expect(scene.log.all.count == 1)
        #expect(scene.log.all[0].hasSuffix(" most=device device: 2, team TEAM000001: 1 names=3"))
        #expect(try await scene.registry.forget(try apps(1...1)[0])?.isUnused == true)
        #expect(try await scene.register(try apps(4...4), on: victim) == [nil])
    }

    @Test func `an app is forgotten only if nothing uses it, and comes back as another`() async throws {
        let scene = try await Scene()
        let app = try apps(1...1)[0]
        #expect(try await scene.registry.forget(app) == nil)
        #expect(try await scene.register([app]) == [nil])
        let slot = try scene.slot(app)
        #expect(try await scene.registry.forget(app)?.devices == 1)
        _ = await scene.registry.unregister([slot])
        // While somebody works with the app, it is not forgotten.
        let pinned = try await scene.registry.withNumber(of: app, for: nil) { _ in try await scene.registry.forget(app)
        }
        #expect(pinned == nil)
        #expect(try await scene.registry.forget(app)?.isUnused == true)
        #expect(scene.registry.number(of: app) == nil && scene.registry.app(slot.app) == nil)
        #expect(scene.postOffice.registration(slot) == nil)
        #expect(try await scene.register([app]) == [nil])
        #expect(try scene.slot(app).app != slot.app)
    }

    @Test func `the registry knows whether a device has an app, and which team brought its name, also after a restart`()
        async throws
    {
        let scene = try await Scene()
        let apps = try apps(1...3)
        func check(_ registry: Registry, _ registered: [Bool], _ teams: [String?]) {
            #expect(apps.map(registry.isRegistered) == registered)
            #expect(apps.map(registry.team(thatBrought:)) == teams)
        }
        check(scene.registry, [false, false, false], [nil, nil, nil])
        for app in apps[..<2] { _ = try await scene.registry.withNumber(of: app, for: .team("TEAM000001")) { $0 } }
        #expect(try await scene.register([apps[1], apps[2]]) == [nil, nil])
        let teams = ["TEAM000001", "TEAM000001", nil]
        check(scene.registry, [false, true, true], teams)
        check(try await scene.restarted(), [false, true, true], teams)
        _ = await scene.registry.unregister(Set(try apps[1...2].map(scene.slot)))
        check(try await scene.restarted(), [false, true, true], teams)
        for app in apps { #expect(try await scene.registry.forget(app)?.isUnused == true) }
        check(scene.registry, [false, false, false], [nil, nil, nil])
    }
}
