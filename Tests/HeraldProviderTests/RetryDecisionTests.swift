import HeraldModel
import NIOCore
import Testing

@testable import HeraldProvider

@Suite struct RetryDecisionTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private var budget = RetryBudget(ProviderRetry())

    private func decision(_ change: (inout ProviderRetry) -> Void = { _ in }) -> RetryDecision {
        var policy = ProviderRetry()
        change(&policy)
        return RetryDecision(policy: policy, deadline: start + .seconds(100))
    }

    private func refusal(_ reason: String, _ status: Int, after: Duration? = nil) -> RetryDecision.Event {
        .refused(
            PushRefusal(
                id: "A",
                status: status,
                reason: PushReason(text: reason),
                since: nil,
                retryAfter: after,
                explanation: nil
            )
        )
    }

    @Test(arguments: RefusalReason.allCases)
    mutating func `retries temporary refusals, and nothing else`(refusalReason: RefusalReason) {
        var decision = decision()
        let event = refusal(refusalReason.reason, refusalReason.httpStatus)
        let step = decision.next(event, now: start, chance: 1, budget: &budget)
        #expect(step == (refusalReason.advice == .retryLater ? .again(after: .milliseconds(500)) : .report))
    }

    @Test(arguments: [(429, true), (503, true), (599, true), (400, false), (403, false), (410, false)])
    mutating func `judges an unknown reason by its status`(status: Int, isRepeated: Bool) {
        var decision = decision()
        let step = decision.next(refusal("TooCold", status), now: start, chance: 1, budget: &budget)
        #expect((step != .report) == isRepeated)
    }

    @Test mutating func `waits as long as the service asks, within reason`() {
        var decision = decision()
        let soon = refusal("TooManyRequests", 429, after: .seconds(7))
        #expect(decision.next(soon, now: start, chance: 1, budget: &budget) == .again(after: .seconds(7)))
        let late = refusal("TooManyRequests", 429, after: .seconds(61))
        #expect(decision.next(late, now: start, chance: 1, budget: &budget) == .report)
    }

    @Test mutating func `ends with its attempts`() {
        var decision = decision()
        var steps = 0
        while decision.next(refusal("Shutdown", 503), now: start, chance: 1, budget: &budget) != .report { steps += 1 }
        #expect(steps == 4)
    }

    @Test mutating func `starts no pause that ends after the time limit`() {
        var decision = decision()
        let event = refusal("ServiceUnavailable", 503)
        #expect(decision.next(event, now: start + .milliseconds(99_500), chance: 1, budget: &budget) == .report)
    }

    @Test mutating func `retries an ambiguous attempt only if configured`() {
        var careful = decision()
        #expect(careful.next(.ambiguous, now: start, chance: 1, budget: &budget) == .report)
        var bold = decision { $0.repeatsAmbiguous = true }
        #expect(bold.next(.ambiguous, now: start, chance: 1, budget: &budget) == .again(after: .milliseconds(500)))
    }

    @Test mutating func `retries at once with a new provider token`() {
        var decision = decision()
        #expect(decision.next(.renewed, now: start, chance: 1, budget: &budget) == .again(after: .zero))
    }

    @Test mutating func `never retries under the policy never`() {
        for event in [.untouched, .renewed, .ambiguous, refusal("Shutdown", 503)] {
            var decision = RetryDecision(policy: .never, deadline: start + .seconds(100))
            #expect(decision.next(event, now: start, chance: 1, budget: &budget) == .report)
        }
    }

    @Test mutating func `retries a tenth of the answers once the reserve is used up`() {
        var repeated = 0
        for _ in 0..<1100 {
            var decision = decision()
            if decision.next(refusal("Shutdown", 503), now: start, chance: 1, budget: &budget) == .report {
                budget.earn()
            } else {
                repeated += 1
            }
        }
        #expect((180...200).contains(repeated))
    }
}
