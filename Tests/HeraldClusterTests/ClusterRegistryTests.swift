import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Testing

/// The registry of a cluster, with lost answers and with two nodes on one log.
@Suite struct ClusterRegistryTests {
    private let log = MemoryLog()
    private let clock = ManualClock()
    private let slot = Slot(device: DeviceNumber(7), app: AppNumber(3))
    private var now: WallTime { clock.now() }

    private func registry(_ name: String) async throws -> ClusterRegistry { try await .loaded(name, from: log) }

    @Test(arguments: [MemoryLog.Fault.lostAnswer, .lostMessage])
    func `a registration is made once, whether the answer or the message was lost`(fault: MemoryLog.Fault) async throws
    {
        let registry = try await registry("a")
        let first = try await registry.register(slot, at: now, fence: 0)
        _ = try await registry.unregister(slot, at: now, fence: 0)
        log.fail(fault)
        let second = try await registry.register(slot, at: now, fence: 0)
        #expect(second.generation == first.generation + 1 && second.isLive)
        let loaded = try await self.registry("b").snapshot().registrations
        #expect(loaded == [second])
        #expect(registry.snapshot().registrations == [second])
    }

    @Test func `a change that no server took changes nothing`() async throws {
        let registry = try await registry("a")
        let made = try await registry.register(slot, at: now, fence: 0)
        log.fail(.notSent)
        await #expect(throws: RecordChangeFailure.notSent) { try await registry.unregister(slot, at: now, fence: 0) }
        #expect(registry.snapshot().registrations == [made])
    }

    @Test func `an outcome that stays unknown is an error, and the next change is made on what the log has`()
        async throws
    {
        let registry = try await registry("a")
        let made = try await registry.register(slot, at: now, fence: 0)
        log.fail(.cutOff)
        await #expect(throws: RecordChangeFailure.unknown) { try await registry.unregister(slot, at: now, fence: 0) }
        log.setAway(false)
        let again = try await registry.register(slot, at: now, fence: 0)
        #expect(again.generation == made.generation + 1)
    }

    @Test func `two nodes change one device, and both changes are kept`() async throws {
        let (a, b) = (try await registry("a"), try await registry("b"))
        let other = Slot(device: slot.device, app: AppNumber(4))
        _ = try await a.register(slot, at: now, fence: 0)
        _ = try await b.register(other, at: now, fence: 0)
        _ = try await a.unregister(slot, at: now, fence: 0)
        let apps = try await registry("c").snapshot().registrations
        #expect(Set(apps.filter(\.isLive).map(\.slot)) == [other])
        #expect(Set(apps.map(\.slot)) == [slot, other])
    }

    @Test func `two nodes give one number to a device and to an app, and never one number to two`() async throws {
        let (a, b) = (try await registry("a"), try await registry("b"))
        let names = try (1...100).map { try #require(DeviceID("phone-\($0)")) }
        var numbers: Set<DeviceNumber> = []
        for (position, name) in names.enumerated() {
            let (first, second) = position % 2 == 0 ? (a, b) : (b, a)
            let number = try await first.number(of: name)
            #expect(try await second.number(of: name) == number)
            numbers.insert(number)
        }
        #expect(numbers.count == 100)
        let incarnations = Set(numbers.map { $0.value >> 32 })
        #expect(incarnations.count == 1 && incarnations.allSatisfy { (1..<1 << 24).contains($0) })
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        let number = try await a.number(of: app, for: nil, at: now)
        #expect(try await b.number(of: app, for: nil, at: now) == number)
        let sandbox = App(topic: app.topic, environment: .sandbox)
        #expect(try await b.number(of: sandbox, for: nil, at: now) != number)
        let snapshot = try await registry("c").snapshot()
        #expect(snapshot.devices.count == 100 && Set(snapshot.apps.map(\.app)) == [app, sandbox])
    }

    @Test func `an app that was forgotten gets another number`() async throws {
        let registry = try await registry("a")
        let app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        let first = try await registry.number(of: app, for: nil, at: now)
        #expect(try await registry.forgetApp(first).isEmpty)
        let second = try await registry.number(of: app, for: nil, at: now)
        #expect(second != first)
        _ = try await registry.forgetApp(second)
        log.expireTombstones()
        #expect(try await self.registry("b").number(of: app, for: nil, at: now) != second)
    }

    @Test func `another number of partitions than the cluster's is refused`() async throws {
        _ = try await registry("a")
        let changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: try #require(NodeName("a"))))
        let eight = try #require(Partitions(count: 8))
        await #expect(throws: ClusterIdentity.OtherPartitions.self) {
            try await ClusterIdentity.open(eight, at: now, changes)
        }
    }
}
