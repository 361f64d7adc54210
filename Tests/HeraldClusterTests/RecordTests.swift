import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore
import Testing

/// Records of the log: each is read as it was written, and no other bytes are.
@Suite struct RecordTests {
    private static let moment = WallTime(milliseconds: 1_790_000_000_000)

    @Test func `a notification keeps everything but its slot, which its subject has`() throws {
        let slot = Slot(device: DeviceNumber(5), app: AppNumber(9))
        let notification = Notification(
            id: NotificationID(high: .max, low: 1),
            uniqueID: NotificationID(high: 2, low: .max),
            slot: slot,
            received: RecordTests.moment,
            storedUntil: RecordTests.moment + .milliseconds(12_345),
            priority: .conserving,
            pushType: .voip,
            collapseID: CollapseID("größer"),
            payload: (0..<5120).map { UInt8(truncatingIfNeeded: $0) }
        )
        let read = try SlotRecord(SlotRecord(notification).body).notification(to: slot)
        #expect(read.id == notification.id && read.uniqueID == notification.uniqueID && read.slot == slot)
        #expect(read.received == notification.received && read.storedUntil == notification.storedUntil)
        #expect(read.priority == .conserving && read.pushType == .voip && read.collapseID?.text == "größer")
        #expect(read.payload == notification.payload)
    }

    @Test func `a collapse identifier that no device must get is left out`() throws {
        let slot = Slot(device: DeviceNumber(5), app: AppNumber(9))
        let notification = Notification(
            id: NotificationID(high: 1, low: 1),
            uniqueID: NotificationID(high: 2, low: 2),
            slot: slot,
            received: RecordTests.moment,
            storedUntil: nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: CollapseID("a£"),
            payload: [1, 2]
        )
        var body = SlotRecord(notification).body
        let place = try #require(body.readableBytesView.lastIndex(of: 0xA3))
        // U+00A3 becomes U+0085.
        body.setInteger(0x85, at: place, as: UInt8.self)
        let read = try SlotRecord(body).notification(to: slot)
        #expect(read.collapseID == nil && read.payload == [1, 2])
    }

    @Test func `claims, apps, devices, channels, broadcasts and counters are read as they were written`() throws {
        let node = try #require(NodeName("node-1"))
        try check(ClaimRecord(node: node, incarnation: .max))
        let topic = try #require(Topic("com.example.chat"))
        for origin: AppOrigin? in [nil, .device(DeviceNumber(7)), .team("TEAM123456")] {
            let app = App(topic: topic, environment: .sandbox)
            try check(AppRecord(app: app, number: AppNumber(.max), origin: origin, created: RecordTests.moment))
        }
        let device = try #require(DeviceID(String(repeating: "d", count: 64)))
        var session = SessionRecord(subscriptions: ["apps/com.example.chat/#": 1], expiryInterval: 60)
        try check(DeviceLogRecord(id: device, number: DeviceNumber(1), record: DeviceRecord(isSavingPower: true)))
        try check(
            DeviceLogRecord(id: device, number: DeviceNumber(1), fence: .max, record: DeviceRecord(session: session))
        )
        session.broadcasts = ["channels/x": 5]
        try check(DeviceLogRecord(id: device, number: DeviceNumber(1), record: DeviceRecord(session: session)))
        let channel = ChannelID(high: 1, low: .max)
        try check(BroadcastChannel(id: channel, app: AppNumber(3), storage: .newest, created: RecordTests.moment))
        for storedUntil in [nil, RecordTests.moment] {
            try check(
                BroadcastRecord(
                    node: node,
                    broadcast: Broadcast(
                        channel: channel,
                        app: AppNumber(3),
                        number: 0,
                        id: NotificationID(high: 1, low: 2),
                        uniqueID: NotificationID(high: 3, low: 4),
                        received: RecordTests.moment,
                        storedUntil: storedUntil,
                        priority: .low,
                        payload: Array("{}".utf8)
                    )
                )
            )
        }
        let partitions = try #require(Partitions(count: 4))
        try check(ClusterRecord(incarnation: 0xFF_FFFF, partitions: partitions, created: RecordTests.moment))
        try check(CounterRecord(next: .max))
    }

    @Test func `registrations are read as they were written`() throws {
        var registrations = DeviceRegistrations(DeviceNumber(5))
        try check(registrations)
        for app in 1...3 as ClosedRange<UInt32> { _ = registrations.register(AppNumber(app), at: RecordTests.moment) }
        registrations.setEnabled(false, AppNumber(1))
        for app in 2...3 as ClosedRange<UInt32> { registrations.unregister(AppNumber(app), at: RecordTests.moment) }
        let slot = Slot(device: DeviceNumber(5), app: AppNumber(2))
        registrations.addFeedback(FeedbackRecord(slot: slot, generation: 0, time: RecordTests.moment))
        registrations.forget([AppNumber(3)])
        try check(registrations)
    }

    @Test func `a record that is cut, longer, or of another version is refused`() throws {
        let body = ClaimRecord(node: try #require(NodeName("a")), incarnation: 1).body
        for count in 0..<body.readableBytes {
            let cut = try #require(body.getSlice(at: 0, length: count))
            #expect(throws: RecordError.damaged(kind: "claim")) { try ClaimRecord(cut) }
        }
        var longer = body
        longer.writeInteger(UInt8(0))
        #expect(throws: RecordError.damaged(kind: "claim")) { try ClaimRecord(longer) }
        var newer = body
        newer.setInteger(UInt8(2), at: 0)
        #expect(throws: RecordError.otherVersion(2, kind: "claim")) { try ClaimRecord(newer) }
    }

    private func check<Record: LogRecord & Equatable>(_ record: Record) throws {
        #expect(try Record(record.body) == record)
    }
}
