import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldMailbox

@Suite struct BackgroundTests {
    @Test func `three background notifications are delivered, the fourth when the budget allows`()
        async throws
    {
        let scene = try await PostOfficeScene()
        let link = try await scene.connect()
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(scene.post().0 == .pending)
            let deliveries = link.take()
            #expect(deliveries.ids == [number])
            scene.acknowledge(deliveries)
        }
        let (decision, envelope) = scene.post()
        #expect(decision == .pending)
        #expect(envelope.status == NotificationStatus(state: .storedBudget, next: scene.clock.now() + .seconds(1200)))
        try await scene.settle()
        #expect(link.take().isEmpty && scene.states.last == .storedBudget)
        try await scene.pass(.seconds(1199))
        #expect(link.take().isEmpty)
        try await scene.pass(.seconds(1))
        let released = link.take()
        #expect(released.ids == [4])
        scene.acknowledge(released)
        try await scene.settle()
        #expect(scene.states.last == .deliveredFromStorage && scene.store.count == 0)
        #expect(!scene.postOffice.release())
        #expect(scene.completions.settled.withLock { $0 } == Array(repeating: .accepted, count: 4))
    }

    @Test func `of held notifications the newest is delivered, and the others are recorded as replaced`() async throws {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        let link = try await scene.connect()
        _ = scene.post()
        scene.acknowledge(link.take())
        for _ in 1...4 { _ = scene.post() }
        try await scene.settle()
        #expect(scene.states.count { $0 == .replaced } == 3)
        try await scene.pass(.seconds(1200))
        #expect(link.take().ids == [5])
    }

    @Test func `other push types have no budget, and a newer one replaces a held one`()
        async throws
    {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        let link = try await scene.connect()
        for _ in 1...10 {
            _ = scene.post(.alert, priority: .immediate)
            let deliveries = link.take()
            #expect(deliveries.count == 1)
            scene.acknowledge(deliveries)
        }
        _ = scene.post()
        _ = scene.post()
        scene.acknowledge(link.take())
        try await scene.settle()
        _ = scene.post(.alert, priority: .immediate)
        try await scene.settle()
        let deliveries = link.take()
        #expect(deliveries.ids == [13])
        scene.acknowledge(deliveries)
        try await scene.pass(.seconds(7200))
        #expect(link.take().isEmpty)
    }

    @Test func `past the budget a notification without storage is discarded with the reason`() async throws {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        let link = try await scene.connect()
        _ = scene.post(stored: false)
        let (decision, envelope) = scene.post(stored: false)
        #expect(decision == .accepted && envelope.status?.state == .discardedBudget && envelope.status?.next != nil)
        #expect(link.take().ids == [1])
    }

    @Test func `the budget spans connections, and a retransmission is free`()
        async throws
    {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        var link = try await scene.connect()
        _ = scene.post()
        #expect(link.take().ids == [1])
        link = try await scene.connect()
        let again = link.take()
        #expect(again.ids == [1])
        scene.acknowledge(again)
        _ = scene.post()
        link = try await scene.connect()
        #expect(link.take().isEmpty)
        try await scene.pass(.seconds(1200))
        #expect(link.take().ids == [2])
    }

    @Test func `a stored notification is charged when it is delivered`() async throws {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        for _ in 1...3 { _ = scene.post() }
        try await scene.settle()
        let link = try await scene.connect()
        let first = link.take()
        #expect(first.ids == [3])
        scene.acknowledge(first)
        _ = scene.post()
        try await scene.settle()
        #expect(link.take().isEmpty)
    }

    @Test func `a held notification expires`() async throws {
        let scene = try await PostOfficeScene {
            $0.backgroundBurst = 1
            $0.backgroundPerHour = 1
        }
        let link = try await scene.connect()
        _ = scene.post()
        scene.acknowledge(link.take())
        _ = scene.post()
        try await scene.settle()
        try await scene.pass(.seconds(31 * 86_400))
        #expect(link.take().isEmpty && scene.states.last == .discardedExpiredFromStorage && scene.store.count == 0)
    }

    @Test func `a newsstand app gets one a day although the device saves power`() async throws {
        let magazine = try #require(Topic("com.example.magazine"))
        let scene = try await PostOfficeScene { $0.newsstandTopics = [magazine] }
        let link = try await scene.connect(saving: true)
        _ = scene.post()
        let first = link.take()
        #expect(first.ids == [1])
        scene.acknowledge(first)
        _ = scene.post()
        try await scene.settle()
        #expect(link.take().isEmpty && scene.states.last == .storedPower)
        try await scene.pass(.seconds(86_399))
        #expect(link.take().isEmpty)
        try await scene.pass(.seconds(1))
        let second = link.take()
        #expect(second.ids == [2])
        scene.acknowledge(second)
        // Priority 1 puts the device's power above everything, and alerts are not downloads.
        try await scene.pass(.seconds(2 * 86_400))
        _ = scene.post(priority: .low)
        _ = scene.post(.alert)
        try await scene.settle()
        #expect(link.take().isEmpty)
        let other = try await PostOfficeScene()
        let saving = try await other.connect(saving: true)
        _ = other.post()
        #expect(saving.take().isEmpty)
    }

    @Test func `the end of power saving does not release a hold of the budget`() async throws {
        let scene = try await PostOfficeScene { $0.backgroundBurst = 1 }
        let link = try await scene.connect()
        _ = scene.post()
        scene.acknowledge(link.take())
        try await scene.setSaving(true)
        _ = scene.post()
        try await scene.settle()
        #expect(scene.states.last == .storedPower)
        try await scene.setSaving(false)
        #expect(link.take().isEmpty)
        try await scene.pass(.seconds(1200))
        #expect(link.take().ids == [2])
    }

    @Test func `power saving discards a notification without storage, with the reason`() async throws {
        let scene = try await PostOfficeScene()
        let link = try await scene.connect(saving: true)
        let (decision, envelope) = scene.post(.alert, stored: false)
        #expect(decision == .accepted && envelope.status == NotificationStatus(state: .discardedPower))
        #expect(link.take().isEmpty)
    }
}
