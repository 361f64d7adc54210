import NIOCore
import Testing

@testable import HeraldProvider

@Suite struct ConnectPlanTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    private func plan(_ change: (inout ProviderConnectionLimits) -> Void = { _ in }) -> ConnectPlan {
        var limits = ProviderConnectionLimits()
        change(&limits)
        return ConnectPlan(limits: limits)
    }

    @Test func `connects when something waits, and one at a time`() {
        var plan = plan()
        #expect(plan.step(isShort: false, usable: 0, opening: 0, now: start) == .nothing)
        #expect(plan.step(isShort: true, usable: 0, opening: 0, now: start) == .connect)
        #expect(plan.step(isShort: true, usable: 0, opening: 1, now: start) == .nothing)
    }

    @Test func `grows when streams are short for a while, up to its maximum`() {
        var plan = plan { $0.maximum = 2 }
        #expect(plan.step(isShort: true, usable: 1, opening: 0, now: start) == .wait(until: start + .milliseconds(250)))
        #expect(plan.step(isShort: true, usable: 1, opening: 0, now: start + .milliseconds(250)) == .connect)
        #expect(plan.step(isShort: true, usable: 2, opening: 0, now: start + .seconds(9)) == .nothing)
    }

    @Test func `does not grow for a short shortage`() {
        var plan = plan()
        _ = plan.step(isShort: true, usable: 1, opening: 0, now: start)
        _ = plan.step(isShort: false, usable: 1, opening: 0, now: start + .milliseconds(200))
        let step = plan.step(isShort: true, usable: 1, opening: 0, now: start + .milliseconds(300))
        #expect(step == .wait(until: start + .milliseconds(550)))
    }

    @Test func `pauses after failures, longer each time, up to a limit`() {
        var plan = plan()
        for expected in [200, 400, 800, 1600] {
            plan.failed(now: start, chance: 1)
            let due = start + .milliseconds(Int64(expected))
            #expect(plan.step(isShort: true, usable: 0, opening: 0, now: start) == .wait(until: due))
            #expect(plan.step(isShort: true, usable: 0, opening: 0, now: due) == .connect)
        }
        for _ in 0..<100 { plan.failed(now: start, chance: 1) }
        #expect(plan.step(isShort: true, usable: 0, opening: 0, now: start) == .wait(until: start + .seconds(60)))
        plan.succeeded()
        plan.failed(now: start, chance: 0)
        #expect(plan.step(isShort: true, usable: 0, opening: 0, now: start) == .wait(until: start + .milliseconds(100)))
    }

    @Test func `the connects of a process are limited to a burst and a rate`() {
        var budget = ConnectBudget()
        var opened = 0
        while budget.take(now: start) == nil { opened += 1 }
        #expect(opened == ConnectBudget.burst)
        var moment = start
        for _ in 0..<10 {
            guard let next = budget.take(now: moment) else { continue }
            #expect(next - moment <= .milliseconds(101))
            moment = next
            let last = budget.take(now: moment)
            #expect(last == nil)
        }
    }

    @Test func `a pause is never shorter than half`() {
        #expect(Pause.length(.seconds(1), .seconds(60), after: 3, chance: 0) == .seconds(4))
        #expect(Pause.length(.seconds(1), .seconds(60), after: 3, chance: 1) == .seconds(8))
        #expect(Pause.length(.seconds(1), .seconds(60), after: 1000, chance: 7) == .seconds(60))
    }
}
