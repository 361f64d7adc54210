import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldMailbox

@Suite struct BackgroundTests {
    @Test func `three background notifications are delivered, the fourth is held and comes when its time has come`()
        async throws
    {
        let office = try await Office()
        let link = try await office.connect()
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(office.post().0 == .pending)
            let deliveries = link.take()
            #expect(deliveries.ids == [number])
            office.acknowledge(deliveries)
        }
        let (decision, letter) = office.post()
        #expect(decision == .pending)
        #expect(letter.fate == Fate(state: .storedBudget, next: office.clock.now() + .seconds(1200)))
        try await office.settle()
        #expect(link.take().isEmpty && office.states.last == .storedBudget)
        try await office.pass(.seconds(1199))
        #expect(link.take().isEmpty)
        try await office.pass(.seconds(1))
        let released = link.take()
        #expect(released.ids == [4])
        office.acknowledge(released)
        try await office.settle()
        #expect(office.states.last == .deliveredFromStorage && office.store.count == 0)
        #expect(!office.postOffice.release())
        #expect(office.receipts.settled.withLock { $0 } == Array(repeating: .accepted, count: 4))
    }

    @Test func `of those that are held the newest is delivered, and the others are on record as replaced`() async throws
    {
        let office = try await Office { $0.backgroundBurst = 1 }
        let link = try await office.connect()
        _ = office.post()
        office.acknowledge(link.take())
        for _ in 1...4 { _ = office.post() }
        try await office.settle()
        #expect(office.states.count { $0 == .replaced } == 3)
        try await office.pass(.seconds(1200))
        #expect(link.take().ids == [5])
    }

    @Test func `other kinds of notifications have no budget, and a newer one takes the place of what is held`()
        async throws
    {
        let office = try await Office { $0.backgroundBurst = 1 }
        let link = try await office.connect()
        for _ in 1...10 {
            _ = office.post(.alert, priority: .immediate)
            let deliveries = link.take()
            #expect(deliveries.count == 1)
            office.acknowledge(deliveries)
        }
        _ = office.post()
        _ = office.post()
        office.acknowledge(link.take())
        try await office.settle()
        _ = office.post(.alert, priority: .immediate)
        try await office.settle()
        let deliveries = link.take()
        #expect(deliveries.ids == [13])
        office.acknowledge(deliveries)
        try await office.pass(.seconds(7200))
        #expect(link.take().isEmpty)
    }

    @Test func `what is over and not to be stored is discarded, with its reason`() async throws {
        let office = try await Office { $0.backgroundBurst = 1 }
        let link = try await office.connect()
        _ = office.post(stored: false)
        let (decision, letter) = office.post(stored: false)
        #expect(decision == .accepted && letter.fate?.state == .discardedBudget && letter.fate?.next != nil)
        #expect(link.take().ids == [1])
    }

    @Test func `the budget is the device's, over all its connections, and what was paid for is sent again`()
        async throws
    {
        let office = try await Office { $0.backgroundBurst = 1 }
        var link = try await office.connect()
        _ = office.post()
        #expect(link.take().ids == [1])
        link = try await office.connect()
        let again = link.take()
        #expect(again.ids == [1])
        office.acknowledge(again)
        _ = office.post()
        link = try await office.connect()
        #expect(link.take().isEmpty)
        try await office.pass(.seconds(1200))
        #expect(link.take().ids == [2])
    }

    @Test func `what came while the device was away counts when it is delivered`() async throws {
        let office = try await Office { $0.backgroundBurst = 1 }
        for _ in 1...3 { _ = office.post() }
        try await office.settle()
        let link = try await office.connect()
        let first = link.take()
        #expect(first.ids == [3])
        office.acknowledge(first)
        _ = office.post()
        try await office.settle()
        #expect(link.take().isEmpty)
    }

    @Test func `what is held expires when its time is over`() async throws {
        let office = try await Office {
            $0.backgroundBurst = 1
            $0.backgroundPerHour = 1
        }
        let link = try await office.connect()
        _ = office.post()
        office.acknowledge(link.take())
        _ = office.post()
        try await office.settle()
        try await office.pass(.seconds(31 * 86_400))
        #expect(link.take().isEmpty && office.states.last == .discardedExpiredFromStorage && office.store.count == 0)
    }

    @Test func `a newsstand app gets one a day although the device saves power, another one waits`() async throws {
        let magazine = try #require(Topic("com.example.magazine"))
        let office = try await Office { $0.newsstandTopics = [magazine] }
        let link = try await office.connect(saving: true)
        _ = office.post()
        let first = link.take()
        #expect(first.ids == [1])
        office.acknowledge(first)
        _ = office.post()
        try await office.settle()
        #expect(link.take().isEmpty && office.states.last == .storedPower)
        try await office.pass(.seconds(86_399))
        #expect(link.take().isEmpty)
        try await office.pass(.seconds(1))
        let second = link.take()
        #expect(second.ids == [2])
        office.acknowledge(second)
        // Priority 1 puts the device's power above everything, and alerts are no downloads.
        try await office.pass(.seconds(2 * 86_400))
        _ = office.post(priority: .low)
        _ = office.post(.alert)
        try await office.settle()
        #expect(link.take().isEmpty)
        let other = try await Office()
        let saving = try await other.connect(saving: true)
        _ = other.post()
        #expect(saving.take().isEmpty)
    }

    @Test func `when power saving ends, what the budget holds back stays held`() async throws {
        let office = try await Office { $0.backgroundBurst = 1 }
        let link = try await office.connect()
        _ = office.post()
        office.acknowledge(link.take())
        try await office.setSaving(true)
        _ = office.post()
        try await office.settle()
        #expect(office.states.last == .storedPower)
        try await office.setSaving(false)
        #expect(link.take().isEmpty)
        try await office.pass(.seconds(1200))
        #expect(link.take().ids == [2])
    }

    @Test func `what is not to be stored is discarded while the device saves power, with its reason`() async throws {
        let office = try await Office()
        let link = try await office.connect(saving: true)
        let (decision, letter) = office.post(.alert, stored: false)
        #expect(decision == .accepted && letter.fate == Fate(state: .discardedPower))
        #expect(link.take().isEmpty)
    }
}
