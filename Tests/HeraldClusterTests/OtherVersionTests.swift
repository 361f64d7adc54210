import HeraldMailbox
import HeraldModel
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// Nodes of two versions in one cluster: what one does not know is refused or left out, and nothing traps.
@Suite struct OtherVersionTests {
    private let node: NodeName

    init() throws { node = try #require(NodeName("a")) }

    private func nodeRecord() -> NodeRecord {
        NodeRecord(
            node: node,
            folder: 1,
            incarnation: 2,
            version: "9.9.9",
            started: WallTime(milliseconds: 0),
            newestTokenKey: 1
        )
    }

    /// The body as a newer Herald may write it.
    private func newer(_ body: ByteBuffer) -> ByteBuffer {
        var body = body
        body.setInteger(RecordWriter.version + 1, at: body.readerIndex)
        return body
    }

    @Test func `each kind of record names its other version`() throws {
        func check<Record: LogRecord>(_ record: Record) {
            let body = newer(record.body)
            let error = #expect(throws: RecordError.self) { try Record(body) }
            #expect(error == .otherVersion(RecordWriter.version + 1, kind: "\(Record.kind)"))
        }
        let slot = Slot(device: DeviceNumber(5), app: AppNumber(9))
        let notification = Notification(
            id: NotificationID(high: 1, low: 1),
            uniqueID: NotificationID(high: 1, low: 2),
            slot: slot,
            received: WallTime(milliseconds: 0),
            storedUntil: nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        let topic = try #require(Topic("com.example.chat"))
        let app = App(topic: topic, environment: .sandbox)
        let device = try #require(DeviceID(String(repeating: "d", count: 64)))
        let channel = ChannelID(high: 1, low: 2)
        let broadcast = Broadcast(
            channel: channel,
            app: AppNumber(3),
            number: 0,
            id: NotificationID(high: 1, low: 2),
            uniqueID: NotificationID(high: 3, low: 4),
            received: WallTime(milliseconds: 0),
            storedUntil: nil,
            priority: .low,
            payload: []
        )
        check(SlotRecord(notification))
        check(ClaimRecord(node: node, incarnation: 1))
        check(AppRecord(app: app, number: AppNumber(1), origin: nil, created: WallTime(milliseconds: 0)))
        check(DeviceLogRecord(id: device, number: DeviceNumber(1), record: DeviceRecord(isSavingPower: true)))
        check(DeviceRegistrations(DeviceNumber(5)))
        check(BroadcastChannel(id: channel, app: AppNumber(3), storage: .newest, created: WallTime(milliseconds: 0)))
        check(BroadcastRecord(node: node, broadcast: broadcast))
        check(
            ClusterRecord(
                incarnation: 1,
                partitions: try #require(Partitions(count: 4)),
                created: WallTime(milliseconds: 0)
            )
        )
        check(CounterRecord(next: 1))
        check(ClusterTrust(authority: [1]))
        check(FactRecord([1, 2, 3]))
        check(nodeRecord())
        check(RingRecord([]))
        check(RungRecord([]))
        check(NodeFrame(sender: node, payload: ByteBuffer()))
    }

    @Test func `a message of another version, or of a kind that is not known, is left out`() {
        let heard = Mutex(0)
        let exchange = NodeExchange(node: node, scheduler: SimTime()) { _, _, _ in }
        exchange.receive(.ring) { _, _, _ in heard.withLock { $0 += 1 } }
        let frame = NodeFrame(sender: node, payload: ByteBuffer()).body
        exchange.received(newer(frame), at: .kind(.ring), isForAll: false)
        #expect(heard.withLock { $0 } == 0)
        exchange.received(frame, at: .kind(.ring), isForAll: false)
        #expect(heard.withLock { $0 } == 1)
        #expect(NodeExchange.Address("kind-of-tomorrow") == nil)
    }

    @Test func `a node whose record is of another version is not among the nodes, and may hold devices`() async throws {
        let (log, time) = (MemoryLog(), EventLoopScheduler(MultiThreadedEventLoopGroup.singleton.next()))
        let own = ClaimRecord(node: try #require(NodeName("own")), incarnation: 1)
        let list = NodeList(own: own, log: log, barriers: LogBarriers(log: log, node: own.node), scheduler: time)
        let message = LogMessage(.node(node), payload: newer(nodeRecord().body))
        await withCheckedContinuation { continuation in log.append(message, to: .meta) { _ in continuation.resume() } }
        try await list.start()
        #expect(list.all.isEmpty && list.others.isEmpty)
        #expect(list.mayLive(nodeRecord().claims))
        list.close()
    }
}
