import HeraldModel
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldMailbox

@Suite struct RegistryTests {
    /// A registry on a store in memory, with one device.
    struct Scene {
        let store: MemoryStore
        let postOffice: PostOffice
        let registry: Registry
        let device: DeviceNumber

        init(_ adjust: (inout RegistryConfiguration) -> Void = { _ in }) async throws {
            var configuration = RegistryConfiguration()
            adjust(&configuration)
            let clock = ManualClock()
            let directory = SingleNodeDirectory()
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
                clock: clock
            )
            device = try await registry.arrive(try #require(DeviceID("device"))).number
        }

        /// - Returns: What each app came to: nil if it is registered.
        func register(_ apps: [App]) async throws -> [RegistrationRefusal?] {
            let results = await registry.register(apps, on: device)
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

    @Test(.timeLimit(.minutes(2)))
    func `apps of one call are registered, and removed, side by side`() async throws {
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

    @Test func `a device gets as many apps as it may have, the first of those it asks for`() async throws {
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

    @Test func `an app that is refused leaves its room to the next`() async throws {
        let scene = try await Scene {
            $0.appsPerDevice = 2
            $0.apps = 3
        }
        let apps = try apps(1...5)
        #expect(try await scene.register([apps[0], apps[1]]) == [nil, nil])
        _ = await scene.registry.unregister([try scene.slot(apps[0])])
        _ = try await scene.registry.makeNumber(of: apps[2])
        #expect(try await scene.register([apps[3], apps[4], apps[2]]) == [.tooManyApps, .tooManyApps, nil])
    }

    @Test func `no more apps get a number than the service may know, however many ask at once`() async throws {
        let scene = try await Scene { $0.apps = 3 }
        let results = try await scene.register(try apps(1...5))
        #expect(results.count { $0 == nil } == 3)
        #expect(results.count { $0 == .tooManyApps } == 2)
    }

    @Test func `a store that fails registers nothing, removes nothing and takes no room`() async throws {
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

    @Test func `of many removed at once as many are remembered as may be, here as in the store`() async throws {
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
}
