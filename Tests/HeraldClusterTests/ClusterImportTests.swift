import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

/// The import of a store into a cluster, and the export of a cluster.
@Suite struct ClusterImportTests {
    private let log = MemoryLog()
    private let clock = ManualClock()
    private let source: MemoryStore
    private var now: WallTime { clock.now() }
    private let channel = BroadcastChannel(
        id: ChannelID(high: 1, low: 2),
        app: AppNumber(1),
        storage: .newest,
        created: WallTime(milliseconds: 5)
    )

    init() {
        source = MemoryStore(clock: clock)
    }

    private func changes(_ node: String = "a") throws -> RecordChanges {
        RecordChanges(log: log, barriers: LogBarriers(log: log, node: try #require(NodeName(node))))
    }

    private func notification(_ number: UInt64, to slot: Slot, for time: Duration = .seconds(60)) -> Notification {
        Notification(
            id: NotificationID(high: 0, low: number),
            uniqueID: NotificationID(high: 1, low: number),
            slot: slot,
            received: now,
            storedUntil: now + time,
            priority: .immediate,
            pushType: .alert,
            collapseID: CollapseID("c"),
            payload: [123, 125]
        )
    }

    /// Two devices: one with an app of the second generation that waits for a notification, one with an ended app.
    private func fill() async throws -> (waiting: Slot, ended: Slot) {
        let app = try await source.number(
            of: App(topic: try #require(Topic("com.example.app")), environment: .production),
            for: .team("TEAM"),
            at: now
        )
        let first = Slot(device: try await source.number(of: try #require(DeviceID("first"))), app: app)
        let second = Slot(device: try await source.number(of: try #require(DeviceID("second"))), app: app)
        _ = try await source.register(first, at: now)
        try await source.unregister(first, at: now)
        _ = try await source.register(first, at: now)
        _ = try await source.register(second, at: now)
        try await source.unregister(second, at: now)
        try await withCheckedThrowingContinuation { continuation in
            source.addFeedback(FeedbackRecord(slot: second, generation: 0, time: now)) { continuation.resume(with: $0) }
        }
        var session = SessionRecord(subscriptions: ["apps/com.example.app": 1], expiryInterval: 60)
        session.broadcasts = ["channels/x": 7]
        try await withCheckedThrowingContinuation { continuation in
            source.setSession(session, for: first.device, fence: 1) { continuation.resume(with: $0) }
        }
        source.put(Envelope(notification(1, to: first), generation: 1), reason: .deviceOffline, tag: nil)
        try await source.createChannel(channel)
        return (first, second)
    }

    private func take(floor: UInt32 = 0) async throws -> ClusterImport.Summary {
        try await ClusterImport(
            from: source,
            generationFloor: floor,
            to: log,
            try #require(Partitions(count: 2)),
            node: try #require(NodeName("a")),
            now: now,
            // However busy the machine is.
            patience: .seconds(3600)
        ).run()
    }

    @Test(arguments: [nil, MemoryLog.Fault.lostAnswer, .lostMessage, .notSent])
    func `numbers, generations, sessions and notifications stay, whatever the log answers`(
        fault: MemoryLog.Fault?
    ) async throws {
        let (waiting, ended) = try await fill()
        if let fault { log.fail(fault, fault, fault) }
        let summary = try await take()
        #expect(
            [summary.devices, summary.apps, summary.registrations, summary.channels, summary.notifications]
                == [2, 1, 2, 1, 1]
        )
        let node = try await RegistryNode("a", log, clock)
        let before = try await source.loadRegistry()
        let after = try await node.store.loadRegistry()
        #expect(Set(after.registrations) == Set(before.registrations) && after.apps == before.apps)
        #expect(Set(after.devices.map(\.1)) == Set(before.devices.map(\.1)))
        #expect(try await node.store.feedback(for: ended.app, limit: 9).map(\.slot) == [ended])
        let record = try await node.store.deviceRecord(waiting.device)
        #expect(record.session?.subscriptions == ["apps/com.example.app": 1] && record.session?.broadcasts == nil)
        let stored = try await node.store.waiting(in: [RegisteredSlot(waiting, generation: 1)])
        #expect(stored.map(\.notification.id.low) == [1] && stored.map(\.notification.payload) == [[123, 125]])
        #expect(try await node.store.loadChannels().map(\.channel) == [channel])
    }

    @Test func `new numbers are none that the source had, and generations begin at its floor`() async throws {
        let (waiting, _) = try await fill()
        _ = try await take(floor: 9)
        let node = try await RegistryNode("a", log, clock)
        let app = try await node.store.number(
            of: App(topic: try #require(Topic("com.example.new")), environment: .production),
            for: nil,
            at: now
        )
        #expect(app.value >= 1 << 20)
        let made = try await node.store.register(Slot(device: waiting.device, app: app), at: now)
        #expect(made.generation == 9)
    }

    @Test func `an expired notification is not taken`() async throws {
        _ = try await fill()
        clock.advance(by: .seconds(61))
        #expect(try await take().notifications == 0)
    }

    @Test func `one import marks the cluster, and nodes wait for its end`() async throws {
        let partitions = try #require(Partitions(count: 2))
        let (mine, other) = ([UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16))
        let taken = [DeviceNumber(7 << 32 | 1)]
        let first = try await ClusterIdentity.beginImport(of: mine, partitions, without: taken, at: now, changes())
        #expect(first.incarnation != 7)
        await #expect(throws: ImportProblem.underWay(since: now)) {
            try await ClusterIdentity.open(partitions, at: now, changes("b"))
        }
        await #expect(throws: ImportProblem.otherImport(since: now)) {
            try await ClusterIdentity.beginImport(of: other, partitions, without: [], at: now, changes("b"))
        }
        let second = try await ClusterIdentity.beginImport(of: mine, partitions, without: taken, at: now, changes())
        await #expect(throws: ImportProblem.takenOver) { try await ClusterIdentity.endImport(first, changes()) }
        log.fail(.lostAnswer)
        let ended = try await ClusterIdentity.endImport(second, changes())
        #expect(try await ClusterIdentity.open(partitions, at: now, changes("b")) == ended)
        await #expect(throws: ImportProblem.notEmpty) {
            try await ClusterIdentity.beginImport(of: mine, partitions, without: [], at: now, changes())
        }
    }

    @Test func `an export has everything that an import took`() async throws {
        let (waiting, ended) = try await fill()
        _ = try await take()
        let node = try #require(NodeName("export"))
        let export = ClusterExport(
            log: log,
            barriers: LogBarriers(log: log, node: node),
            partitions: try #require(Partitions(count: 2)),
            scheduler: QueueScheduler(),
            logger: .silent
        )
        let entries = Mutex<[StoreEntry]>([])
        try await export.run { taken in entries.withLock { $0 += taken } }
        var kinds: [String: Int] = [:]
        for entry in entries.withLock({ $0 }) {
            switch entry {
            case .app: kinds["app", default: 0] += 1
            case .device(let id, let number, let record):
                kinds["device", default: 0] += 1
                if number == waiting.device { #expect(id.name == "first" && record.session?.expiryInterval == 60) }
            case .registrations(let device, let all, let feedback, _):
                kinds["registrations", default: 0] += all.count
                #expect(feedback.count == (device == ended.device ? 1 : 0))
            case .channel(let found): #expect(found == channel)
            case .notification(let stored):
                kinds["notification", default: 0] += 1
                let expected = notification(1, to: waiting)
                #expect(stored.generation == 1 && stored.notification.uniqueID == expected.uniqueID)
                #expect(stored.notification.slot == waiting && stored.notification.storedUntil == expected.storedUntil)
            case .appForgotten, .channelDeleted, .broadcast, .notificationEnded: Issue.record("\(entry)")
            }
        }
        #expect(kinds == ["app": 1, "device": 2, "registrations": 2, "notification": 1])
    }
}
