import HeraldModel
import Testing

@testable import HeraldMailbox

private func slot(_ device: UInt64, _ app: UInt32 = 1) -> Slot {
    Slot(device: DeviceNumber(device), app: AppNumber(app))
}

/// A rate limiter by reference, so that an expectation may change it.
private final class Limiter {
    private var rates: TokenRateLimiter

    init(_ rates: TokenRateLimiter) { self.rates = rates }

    func take(_ slot: Slot, at moment: WallTime) -> Bool { rates.take(slot, at: moment) }
}

private let start = WallTime(seconds: 1_800_000_000)

@Suite struct TokenRateLimiterTests {
    @Test func `a token has its burst, then its rate`() {
        let limiter = Limiter(TokenRateLimiter(burst: 10, perSecond: 2))
        for _ in 0..<10 { #expect(limiter.take(slot(1), at: start)) }
        #expect(!limiter.take(slot(1), at: start))
        #expect(!limiter.take(slot(1), at: start + .milliseconds(499)))
        #expect(limiter.take(slot(1), at: start + .milliseconds(500)))
        #expect(!limiter.take(slot(1), at: start + .milliseconds(500)))
        // After a pause all of it is back, and no more.
        for _ in 0..<10 { #expect(limiter.take(slot(1), at: start + .seconds(60))) }
        #expect(!limiter.take(slot(1), at: start + .seconds(60)))
    }

    @Test func `by default ten thousand at once and a thousand a second`() {
        let limiter = Limiter(TokenRateLimiter())
        for _ in 0..<10_000 { #expect(limiter.take(slot(1), at: start)) }
        #expect(!limiter.take(slot(1), at: start))
        for _ in 0..<1000 { #expect(limiter.take(slot(1), at: start + .seconds(1))) }
        #expect(!limiter.take(slot(1), at: start + .seconds(1)))
    }

    @Test func `no token is refused because of other tokens`() {
        let limiter = Limiter(TokenRateLimiter(burst: 3, perSecond: 1, capacity: 4))
        for _ in 0..<3 { #expect(limiter.take(slot(7), at: start)) }
        for device in 100..<10_000 as Range<UInt64> { #expect(limiter.take(slot(device), at: start)) }
    }

    @Test func `the busiest token stays in the table among a thousand others`() {
        let limiter = Limiter(TokenRateLimiter(burst: 100, perSecond: 1))
        var refusals = 0
        for round in 0..<1000 as Range<UInt64> {
            if !limiter.take(slot(7), at: start) { refusals += 1 }
            for other in 0..<20 as Range<UInt64> { _ = limiter.take(slot(1000 + round * 20 + other), at: start) }
        }
        #expect(refusals == 900)
    }

    @Test func `two apps of one device are two tokens`() {
        let limiter = Limiter(TokenRateLimiter(burst: 1, perSecond: 1))
        #expect(limiter.take(slot(1, 1), at: start))
        #expect(limiter.take(slot(1, 2), at: start))
        #expect(!limiter.take(slot(1, 1), at: start))
    }

    @Test func `a clock that is set back blocks no token`() {
        let limiter = Limiter(TokenRateLimiter(burst: 10, perSecond: 1))
        #expect(limiter.take(slot(1), at: start))
        for _ in 0..<10 { #expect(limiter.take(slot(2), at: start)) }
        // Loops read the clock at different moments: that gives nothing back.
        #expect(!limiter.take(slot(2), at: start - .milliseconds(900)))
        let earlier = start - .seconds(86_400)
        for number in 1...2 as ClosedRange<UInt64> {
            for _ in 0..<10 { #expect(limiter.take(slot(number), at: earlier)) }
            #expect(!limiter.take(slot(number), at: earlier))
        }
    }

    @Test func `a rate of zero limits nothing`() {
        let limiter = Limiter(TokenRateLimiter(burst: 1, perSecond: 0))
        for _ in 0..<100 { #expect(limiter.take(slot(1), at: start)) }
    }
}

@Suite struct DueQueueTests {
    @Test func `slots are taken when they are due, the earliest first`() {
        var queue = DueQueue()
        for number in (0..<200 as Range<UInt64>).map({ $0 * 73 % 200 }) {
            queue.set(slot(number), due: start + .seconds(Int64(number)))
        }
        #expect(queue.take(dueAt: start - .milliseconds(1), limit: 10) == [])
        #expect(queue.take(dueAt: start + .seconds(4), limit: 10) == (0..<5).map { slot($0) })
        #expect(queue.take(dueAt: start + .seconds(300), limit: 3) == (5..<8).map { slot($0) })
        #expect(queue.take(dueAt: start + .seconds(300), limit: 1000) == (8..<200).map { slot($0) })
        #expect(queue.isEmpty)
    }

    @Test func `a slot is in the queue once, with the last moment set`() {
        var queue = DueQueue()
        for second in 0..<1000 as Range<Int64> { queue.set(slot(1), due: start + .seconds(1000 - second)) }
        #expect(queue.count == 1)
        #expect(queue.take(dueAt: start, limit: 10) == [])
        #expect(queue.take(dueAt: start + .seconds(1), limit: 10) == [slot(1)])
        #expect(queue.take(dueAt: start + .seconds(2000), limit: 10) == [])
    }
}

@Suite struct BackgroundBudgetTests {
    private func notification(_ number: UInt64, app: UInt32 = 1) -> Notification {
        Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: slot(1, app),
            received: start,
            storedUntil: start + .seconds(3600),
            priority: .conserving,
            pushType: .background,
            collapseID: nil,
            payload: []
        )
    }

    @Test func `the budget allows a burst, then one each twenty minutes`() {
        var budget = BackgroundBudget(burst: 3, perHour: 3)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(budget.due(notification(number), at: start) == nil)
            budget.charge(notification(number), at: start)
        }
        #expect(budget.due(notification(4), at: start) == start + .seconds(1200))
        #expect(budget.due(notification(4), at: start + .seconds(1199)) == start + .seconds(1200))
        #expect(budget.due(notification(4), at: start + .seconds(1200)) == nil)
        #expect(budget.due(notification(4, app: 2), at: start) == nil)
    }

    @Test func `a retransmission is free`() {
        var budget = BackgroundBudget(burst: 1, perHour: 1)
        budget.charge(notification(1), at: start)
        #expect(budget.due(notification(1), at: start) == nil)
        budget.charge(notification(1), at: start)
        #expect(budget.due(notification(2), at: start) == start + .seconds(3600))
    }

    @Test func `a clock that is set back forgives a debt`() {
        var budget = BackgroundBudget(burst: 1, perHour: 1)
        budget.charge(notification(1), at: start)
        #expect(budget.due(notification(2), at: start - .milliseconds(900)) != nil)
        #expect(budget.due(notification(2), at: start - .seconds(60)) == nil)
    }

    @Test func `only slots in debt take memory`() {
        var budget = BackgroundBudget(burst: 3, perHour: 3)
        for app in 1...100 as ClosedRange<UInt32> { budget.charge(notification(1, app: app), at: start) }
        budget.forget(at: start + .seconds(1199))
        #expect(budget.debtorCount == 100)
        budget.forget(at: start + .seconds(1200))
        #expect(budget.debtorCount == 0)
    }

    @Test func `a newsstand app is owed one in 24 hours`() {
        var budget = BackgroundBudget()
        budget.addNewsstand(AppNumber(1))
        #expect(budget.isNewsstand(AppNumber(1)) && !budget.isNewsstand(AppNumber(2)))
        #expect(budget.owedFrom(slot(1), start) == nil)
        budget.charge(notification(1), at: start)
        #expect(budget.owedFrom(slot(1), start + .seconds(86_399)) == start + .seconds(86_400))
        #expect(budget.owedFrom(slot(1), start + .seconds(86_400)) == nil)
    }

    @Test func `a debt never exceeds one interval past the burst`() {
        var budget = BackgroundBudget(burst: 1000, perHour: 1)
        for number in 1...1000 as ClosedRange<UInt64> { budget.charge(notification(number), at: start) }
        #expect(budget.due(notification(3000), at: start) == start + .seconds(3600))
    }

    @Test func `a rate of zero an hour limits nothing`() {
        var budget = BackgroundBudget(burst: 1, perHour: 0)
        for number in 1...100 as ClosedRange<UInt64> {
            #expect(budget.due(notification(number), at: start) == nil)
            budget.charge(notification(number), at: start)
        }
        #expect(budget.debtorCount == 0)
    }
}
