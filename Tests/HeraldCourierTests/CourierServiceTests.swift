import HeraldModel
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

    @Test func `past it the newer is refused for the rest of the minute, and told of once`() {
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

    @Test func `devices are told apart`() {
        var limiter = TakeoverLimiter(limit: 1)
        _ = limiter.takesOver(device, now: start)
        let same = limiter.takesOver(device, now: start)
        let other = limiter.takesOver(DeviceID("b")!, now: start)
        #expect(same == .refused(isFirst: true) && other == .permitted)
    }
}

struct DeviceErrandsTests {
    @Test func `errands of one device run in order, those of others beside them`() async {
        let errands = DeviceErrands()
        let log = Mutex<[String]>([])
        let (gate, open) = AsyncStream<Void>.makeStream()
        let a = DeviceID("a")!
        let b = DeviceID("b")!
        errands.add(
            a,
            .task {
                for await _ in gate {}
                log.withLock { $0.append("a1") }
            }
        )
        for number in 2...5 { errands.add(a, .task { log.withLock { $0.append("a\(number)") } }) }
        errands.add(
            b,
            .task {
                log.withLock { $0.append("b1") }
                open.finish()
            }
        )
        errands.finish()
        await errands.run()
        #expect(log.withLock { $0 } == ["b1", "a1", "a2", "a3", "a4", "a5"])
    }
}

extension DeviceErrandsTests {
    @Test func `a call begins at once, and what comes meanwhile waits for its end`() async {
        let errands = DeviceErrands()
        let log = Mutex<[String]>([])
        let pending = Mutex<[@Sendable () -> Void]>([])
        let a = DeviceID("a")!
        func call(_ name: String) -> DeviceErrands.Errand {
            .call { isOver in
                log.withLock { $0.append(name) }
                pending.withLock { $0.append(isOver) }
            }
        }
        errands.add(a, call("a1"))
        errands.add(a, call("a2"))
        errands.add(a, .task { log.withLock { $0.append("a3") } })
        errands.add(DeviceID("b")!, .call { $0() })
        async let running: Void = errands.run()
        // Ends what was begun all the same.
        errands.finish()
        #expect(log.withLock { $0 } == ["a1"])
        pending.withLock { $0.removeFirst() }()
        #expect(log.withLock { $0 } == ["a1", "a2"])
        pending.withLock { $0.removeFirst() }()
        await running
        #expect(log.withLock { $0 } == ["a1", "a2", "a3"])
        errands.add(a, call("never"))
        #expect(log.withLock { $0.count } == 3)
    }
}

struct ConnectionTableTests {
    @Test func `only the newest connection of a device leaves a session`() {
        let table = ConnectionTable(remnantLimit: 10)
        let device = DeviceID("a")!
        table.setFence(1, of: device)
        table.setFence(2, of: device)
        #expect(!table.clearFence(1, of: device))
        #expect(table.isLetIn(device))
        #expect(table.clearFence(2, of: device))
        #expect(!table.isLetIn(device))
    }

    @Test func `what is remembered of absent devices is bounded, and taken once`() {
        let table = ConnectionTable(remnantLimit: 3)
        let remnants = (1...2).map {
            DeliveryWindow.Remnant(notification: NotificationID(high: 0, low: UInt64($0)), packetIdentifier: UInt16($0))
        }
        table.remember(remnants, of: DeviceNumber(1))
        table.remember(remnants, of: DeviceNumber(2))
        #expect(table.takeRemnants(of: DeviceNumber(2)).isEmpty)
        #expect(table.takeRemnants(of: DeviceNumber(1)) == remnants)
        #expect(table.takeRemnants(of: DeviceNumber(1)).isEmpty)
        table.remember(remnants, of: DeviceNumber(2))
        #expect(table.takeRemnants(of: DeviceNumber(2)) == remnants)
    }

    @Test func `an empty table is waited for`() async {
        await ConnectionTable(remnantLimit: 1).untilEmpty()
    }
}
