import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

/// A store that is filled with what a cluster keeps.
@Suite struct StoreFillerTests {
    private let clock = ManualClock()
    private var now: WallTime { clock.now() }
    private let device = DeviceNumber(1 << 40)
    private let app: AppRecord

    init() throws {
        app = AppRecord(
            app: App(topic: try #require(Topic("com.example.app")), environment: .production),
            number: AppNumber(77),
            origin: .device(device),
            created: WallTime(milliseconds: 3)
        )
    }

    private func registration(_ app: UInt32 = 77, _ generation: UInt32, isLive: Bool = true) -> Registration {
        Registration(
            slot: Slot(device: device, app: AppNumber(app)),
            generation: generation,
            isLive: isLive,
            registered: now,
            ended: isLive ? nil : now
        )
    }

    private func notification(_ number: UInt64, _ generation: UInt32, until end: Duration = .seconds(60)) -> StoreEntry
    {
        let notification = Notification(
            id: NotificationID(high: 0, low: number),
            uniqueID: NotificationID(high: 0, low: number),
            slot: Slot(device: device, app: AppNumber(77)),
            received: now,
            storedUntil: now + end,
            priority: .immediate,
            pushType: .alert,
            collapseID: CollapseID("collapse"),
            payload: [123, 125]
        )
        return .notification(
            StoredNotification(notification: notification, generation: generation, sequence: (1 << 50) + number)
        )
    }

    /// A store with these entries in place of what it had, open again.
    private func filled(_ entries: [StoreEntry]) async throws -> (SQLiteStore, TemporaryFolder) {
        let folder = try TemporaryFolder()
        let former = try SQLiteFixture.open(folder, clock: clock)
        _ = try await former.number(of: try #require(DeviceID("former")))
        await former.close()
        let filler = try StoreFiller(folder.path + "/store.sqlite")
        try filler.add(entries)
        try filler.finish(at: now)
        return (try SQLiteFixture.open(folder, clock: clock), folder)
    }

    @Test func `the newest of each counts, and what nothing names is left out`() async throws {
        let id = try #require(DeviceID("device"))
        let channel = BroadcastChannel(
            id: ChannelID(high: 1, low: 2),
            app: AppNumber(77),
            storage: .newest,
            created: now
        )
        let orphan = BroadcastChannel(
            id: ChannelID(high: 1, low: 3),
            app: AppNumber(78),
            storage: .newest,
            created: now
        )
        let (store, folder) = try await filled([
            .app(app),
            .registrations(device, [registration(77, 1)], feedback: [], generationFloor: 0),
            .registrations(device, [registration(77, 2), registration(78, 0)], feedback: [], generationFloor: 4),
            .device(id, device, DeviceRecord(isSavingPower: true)),
            .channel(channel), .channel(orphan),
            notification(1, 2), notification(2, 2), notification(3, 1), notification(4, 3),
        ])
        defer { withExtendedLifetime(folder) {} }
        let registry = try await store.loadRegistry()
        #expect(registry.devices.map(\.0) == [id] && registry.devices.map(\.1) == [device])
        #expect(registry.apps == [app] && registry.registrations == [registration(77, 2)])
        #expect(try await store.generationFloor() == 4)
        #expect(try await store.deviceRecord(device).isSavingPower)
        #expect(try await store.loadChannels().map(\.channel) == [channel])
        let waiting = try await store.waiting(in: [RegisteredSlot(registration(77, 2).slot, generation: 2)])
        #expect(waiting.map(\.notification.id.low) == [2] && store.count == 1)
        await store.close()
    }

    @Test func `what ended, expired or was forgotten is not there`() async throws {
        let slot = RegisteredSlot(registration(77, 0).slot, generation: 0)
        let (ended, first) = try await filled([
            .app(app), .device(try #require(DeviceID("device")), device, DeviceRecord()),
            .registrations(device, [registration(77, 0)], feedback: [], generationFloor: 0),
            notification(1, 0), .notificationEnded(slot),
        ])
        #expect(ended.count == 0)
        await ended.close()
        let (expired, second) = try await filled([
            .app(app), .device(try #require(DeviceID("device")), device, DeviceRecord()),
            .registrations(device, [registration(77, 0)], feedback: [], generationFloor: 0),
            notification(1, 0, until: .zero),
        ])
        #expect(expired.count == 0)
        await expired.close()
        let (forgotten, third) = try await filled([
            .app(app), .device(try #require(DeviceID("device")), device, DeviceRecord()), .appForgotten(app.app),
            .registrations(device, [registration(77, 0)], feedback: [], generationFloor: 0),
        ])
        #expect(try await forgotten.loadRegistry().registrations.isEmpty)
        await forgotten.close()
        withExtendedLifetime([first, second, third]) {}
    }

    @Test func `an emptied store has no contents, and its numbers go on`() async throws {
        let (store, folder) = try await filled([
            .app(app), .device(try #require(DeviceID("device")), device, DeviceRecord()),
        ])
        #expect(try await store.hasContents())
        await store.close()
        try StoreFiller.empty(folder.path + "/store.sqlite")
        let empty = try SQLiteFixture.open(folder, clock: clock)
        #expect(try await !empty.hasContents())
        await empty.close()
    }
}
