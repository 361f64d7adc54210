import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldMailbox

@Suite struct LimitTests {
    @Test func `a token that is sent too many at once is refused, and another one is not`() async throws {
        let scene = try await PostOfficeScene {
            $0.tokenBurst = 5
            $0.tokenRate = 1
        }
        for _ in 1...5 { #expect(scene.post(.alert).0 == .pending) }
        #expect(scene.post(.alert).0 == .refused(.tooManyRequests, since: nil))
        scene.clock.advance(by: .seconds(1))
        #expect(scene.post(.alert).0 == .pending)
        #expect(scene.post(.alert).0 == .refused(.tooManyRequests, since: nil))
        // Nothing of what was refused is on record.
        try await scene.settle()
        #expect(scene.states.count { $0 == .received } == 6)
    }

    @Test func `past the memory limit notifications are refused until memory is free`() async throws {
        let scene = try await PostOfficeScene {
            $0.notificationBytes = 10 * 514
            $0.tokenRate = 0
        }
        var accepted = 0
        for _ in 0..<1000 where scene.post(.alert).0 == .pending { accepted += 1 }
        #expect(accepted == 10)
        #expect(!scene.postOffice.isAccepting && scene.postOffice.memory.current == 10 * 514)
        try await scene.settle()
        #expect(scene.postOffice.isAccepting && scene.postOffice.memory.current == 0)
        #expect(scene.post(.alert).0 == .pending)
    }

    @Test func `past half of the memory limit a silent device has four in flight`() async throws {
        let scene = try await PostOfficeScene {
            $0.notificationBytes = 40 * 514
            $0.tokenRate = 0
        }
        let link = try await scene.connect()
        for _ in 0..<1000 {
            #expect(scene.post(.alert, priority: .immediate).0 == .pending)
            try await scene.settle()
        }
        // Twenty to half of the limit; what came later waits on the disk, the newest alone.
        #expect(link.take().count == 20)
        #expect(scene.postOffice.memory.current <= 21 * 514 && scene.store.count == 1)
    }

    @Test func `overload is told once, lasts some seconds after the last refusal, and its end is told`() async throws {
        let log = LogNotes()
        let scene = try await PostOfficeScene(logger: log.logger) { $0.notificationBytes = 514 }
        _ = scene.post(.alert)
        #expect(!scene.postOffice.isOverloaded)
        for _ in 0..<5 { #expect(scene.post(.alert).0 == .refused(.serviceUnavailable, since: nil)) }
        #expect(scene.postOffice.isOverloaded && log.all.count { $0.contains("faster than they can be stored") } == 1)
        scene.clock.advance(by: .seconds(6))
        #expect(!scene.postOffice.isOverloaded)
        await scene.postOffice.sweep()
        #expect(!log.all.contains { $0.contains("stored as they come again") })
        scene.clock.advance(by: .seconds(60))
        await scene.postOffice.sweep()
        #expect(log.all.count { $0.contains("stored as they come again") } == 1)
    }

    @Test func `a store that cannot write is not overloaded`() async throws {
        let scene = try await PostOfficeScene()
        scene.store.setAccepting(false)
        #expect(scene.post(.alert).0 == .refused(.serviceUnavailable, since: nil))
        #expect(!scene.postOffice.isOverloaded)
    }

    @Test func `an overloaded store also refuses an unreadable notification`() async throws {
        let scene = try await PostOfficeScene()
        scene.store.setAccepting(false)
        let (_, envelope) = scene.post()
        let decision = scene.postOffice.discard(envelope, as: .discardedUndeliverable)
        #expect(decision == .refused(.serviceUnavailable, since: nil))
    }
}

@Suite struct FailedReadTests {
    @Test func `a failed read is repeated by the clock alone`() async throws {
        let scene = try await PostOfficeScene()
        _ = scene.post(.alert)
        try await scene.settle()
        scene.store.setFailsReads(true)
        let link = try await scene.connect()
        try await scene.pass(.seconds(1))
        #expect(link.take().isEmpty)
        scene.store.setFailsReads(false)
        // A read that the scene's own tick has begun before may still fail.
        var deliveries = link.take()
        for _ in 0..<3 where deliveries.isEmpty {
            try await scene.pass(.seconds(1))
            deliveries = link.take()
        }
        #expect(deliveries.count == 1)
    }
}

@Suite struct NotificationStatusTests {
    @Test func `the status of a notification is told`() async throws {
        let scene = try await PostOfficeScene()
        let (_, away) = scene.post(.alert)
        #expect(away.status == NotificationStatus(state: .storedDeviceOffline))
        let (_, newer) = scene.post(.alert)
        try await scene.settle()
        #expect(newer.status == NotificationStatus(state: .storedDeviceOffline))
        let link = try await scene.connect()
        scene.acknowledge(link.take())
        let (_, quick) = scene.post(.alert)
        scene.acknowledge(link.take())
        #expect(quick.status == NotificationStatus(state: .delivered))
        let (_, slow) = scene.post(.alert)
        scene.postOffice.tick()
        scene.postOffice.tick()
        #expect(slow.status == NotificationStatus(state: .storedUnacknowledged))
        try await scene.registry.setEnabled(false, for: scene.slot)
        let (_, off) = scene.post(.alert)
        #expect(off.status == NotificationStatus(state: .discardedDisabled))
    }

    @Test func `switching an app off discards its stored notification for good`()
        async throws
    {
        let scene = try await PostOfficeScene()
        _ = scene.post(.alert)
        try await scene.settle()
        try await scene.registry.setEnabled(false, for: scene.slot)
        #expect(scene.store.count == 0 && scene.states.last == .discardedDisabledFromStorage)
        try await scene.registry.setEnabled(true, for: scene.slot)
        let link = try await scene.connect()
        #expect(link.take().isEmpty)
    }

    @Test func `an unacknowledged delivery of a switched-off app is discarded with the connection`()
        async throws
    {
        let scene = try await PostOfficeScene()
        let link = try await scene.connect()
        _ = scene.post(.alert)
        #expect(link.take().count == 1)
        try await scene.registry.setEnabled(false, for: scene.slot)
        scene.postOffice.detach(scene.slot.device, fence: 1)
        try await scene.settle()
        #expect(scene.store.count == 0 && scene.states.last == .discardedDisabled)
    }
}
