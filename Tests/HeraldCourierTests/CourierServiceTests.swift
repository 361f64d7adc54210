import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Logging
import NIOCore
import Synchronization
import Testing

@testable import HeraldCourier

struct TakeoverLimiterTests {
    private let device: DeviceID
    private let start = ContinuousClock.now

    init() throws {
        device = try #require(DeviceID("a"))
    }

    @Test func `within the limit the newer connection takes over`() {
        var limiter = TakeoverLimiter(limit: 3)
        for second in 0..<3 {
            let decision = limiter.takesOver(device, now: start + .seconds(second))
            #expect(decision == .permitted)
        }
    }

    @Test func `past the limit the newer connection is refused for the rest of the minute, and reported once`() {
        var limiter = TakeoverLimiter(limit: 2)
        var decisions: [TakeoverLimiter.Decision] = []
        for second in [0, 10, 20, 30, 59, 60, 61] {
            decisions.append(limiter.takesOver(device, now: start + .seconds(second)))
        }
        #expect(
            decisions == [
                .permitted, .permitted, .refused(isFirst: true), .refused(isFirst: false), .refused(isFirst: false),
                .permitted,
                .permitted,
            ]
        )
    }

    @Test func `each device has a limit of its own`() {
        var limiter = TakeoverLimiter(limit: 1)
        _ = limiter.takesOver(device, now: start)
        let same = limiter.takesOver(device, now: start)
        let other = limiter.takesOver(DeviceID("b")!, now: start)
        #expect(same == .refused(isFirst: true) && other == .permitted)
    }
}

struct PerDeviceQueueTests {
    private let a: DeviceID
    private let b: DeviceID

    init() throws {
        a = try #require(DeviceID("a"))
        b = try #require(DeviceID("b"))
    }

    @Test func `tasks of one device run in order, those of other devices beside them`() async {
        let queue = PerDeviceQueue()
        let log = Mutex<[String]>([])
        let (gate, open) = AsyncStream<Void>.makeStream()
        queue.addTask(a) {
            for await _ in gate {}
            log.withLock { $0.append("a1") }
        }
        for number in 2...5 { queue.addTask(a) { log.withLock { $0.append("a\(number)") } } }
        queue.addTask(b) {
            log.withLock { $0.append("b1") }
            open.finish()
        }
        queue.finish()
        await queue.run()
        #expect(log.withLock { $0 } == ["b1", "a1", "a2", "a3", "a4", "a5"])
    }

    @Test func `an operation begins at once, and the next ones wait for its end`() async {
        let queue = PerDeviceQueue()
        let log = Mutex<[String]>([])
        let pending = Mutex<[@Sendable () -> Void]>([])
        func operation(_ name: String) -> PerDeviceQueue.Operation {
            { done in
                log.withLock { $0.append(name) }
                pending.withLock { $0.append(done) }
            }
        }
        queue.add(a, operation("a1"))
        queue.add(a, operation("a2"))
        queue.addTask(a) { log.withLock { $0.append("a3") } }
        queue.add(b) { $0() }
        async let running: Void = queue.run()
        // Operations that were added before still end.
        queue.finish()
        #expect(log.withLock { $0 } == ["a1"])
        pending.withLock { $0.removeFirst() }()
        #expect(log.withLock { $0 } == ["a1", "a2"])
        pending.withLock { $0.removeFirst() }()
        await running
        #expect(log.withLock { $0 } == ["a1", "a2", "a3"])
        queue.add(a, operation("never"))
        #expect(log.withLock { $0.count } == 3)
    }
}

struct RefusedTopicTests {
    @Test func `the log names device, topic and what is allowed, once a minute for each kind`() throws {
        let notes = LogNotes()
        let courier = CourierState(
            services: FakeServices().services,
            limits: CourierLimits(CourierConfiguration()),
            clock: ManualClock(),
            logger: notes.logger
        )
        let device = try #require(DeviceID("lamp"))
        let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
        for second in [0, 1, 59, 60] as [Int64] {
            courier.log(.subscribe("apps/#"), of: device, now: start + .seconds(second))
        }
        courier.log(.publish("apps/com.example.app"), of: device, now: start)
        let filters =
            "apps/<topic>, apps/<topic>/token, apps/<topic>/#, channels/<bundle id>/<channel id> and "
            + "device/service"
        #expect(
            notes.all == [
                "topic filter of a device refused allowed=\(filters) device=lamp topic=apps/#",
                "topic filter of a device refused allowed=\(filters) device=lamp since_last_line=2 topic=apps/#",
                "publish of a device refused allowed=apps/<topic>/settings, apps/<topic>/token, device/power and "
                    + "device/service device=lamp topic=apps/com.example.app",
            ]
        )
    }
}

struct TakeoversTests {
    private let identity: DeviceIdentity

    init() throws {
        let id = try #require(DeviceID("a"))
        identity = DeviceIdentity(id: id, serial: "01", expires: WallTime(milliseconds: .max))
    }

    private func takeovers(_ change: (inout CourierConfiguration) -> Void = { _ in }) -> Takeovers {
        var configuration = CourierConfiguration()
        change(&configuration)
        return Takeovers(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test func `the newest connection of a device is the one with the last fence`() {
        let takeovers = takeovers()
        takeovers.admitted(identity.id, fence: 1)
        takeovers.admitted(identity.id, fence: 2)
        #expect(!takeovers.closed(identity.id, fence: 1))
        #expect(takeovers.closed(identity.id, fence: 2))
        #expect(!takeovers.closed(identity.id, fence: 2))
    }

    @Test func `only a connected device takes over, and not past the limit`() {
        let takeovers = takeovers { $0.takeoversPerMinute = 1 }
        for _ in 1...3 { #expect(takeovers.permits(identity, isHeldElsewhere: false)) }
        takeovers.admitted(identity.id, fence: 1)
        #expect(takeovers.permits(identity, isHeldElsewhere: false))
        #expect(!takeovers.permits(identity, isHeldElsewhere: false))
        #expect(takeovers.closed(identity.id, fence: 1))
        #expect(takeovers.permits(identity, isHeldElsewhere: false))
    }

    @Test func `unacknowledged notifications of absent devices are bounded, and taken once`() {
        let takeovers = takeovers { $0.rememberedDuplicates = 3 }
        let two = (1...2).map {
            UnacknowledgedNotification(
                notification: NotificationID(high: 0, low: UInt64($0)),
                packetIdentifier: UInt16($0)
            )
        }
        takeovers.remember(two, of: DeviceNumber(1))
        takeovers.remember(two, of: DeviceNumber(2))
        #expect(takeovers.takeUnacknowledged(of: DeviceNumber(2)).isEmpty)
        #expect(takeovers.takeUnacknowledged(of: DeviceNumber(1)) == two)
        #expect(takeovers.takeUnacknowledged(of: DeviceNumber(1)).isEmpty)
        takeovers.remember(two, of: DeviceNumber(2))
        #expect(takeovers.takeUnacknowledged(of: DeviceNumber(2)) == two)
    }

    @Test func `waiting for an empty table of connections returns at once`() async {
        await ConnectionTable().untilEmpty()
    }
}
