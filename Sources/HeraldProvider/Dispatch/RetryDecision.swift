import HeraldModel
import NIOCore

/// What follows an attempt: the end, or another attempt and when.
struct RetryDecision {
    enum Event {
        /// The service refused it.
        case refused(PushRefusal)
        /// A provider token that was too old was replaced.
        case renewed
        /// The service did not look at it.
        case untouched
        /// The service may have it, and nobody can say.
        case ambiguous
    }

    enum Step: Hashable {
        /// Tell the caller.
        case report
        case again(after: Duration)
    }

    let policy: ProviderRetry
    let deadline: NIODeadline
    /// How often it was tried.
    private(set) var attempts = 0

    init(policy: ProviderRetry, deadline: NIODeadline) {
        self.policy = policy
        self.deadline = deadline
    }

    /// An attempt has ended without acceptance.
    mutating func next(_ event: Event, now: NIODeadline, chance: Double, budget: inout RetryBudget) -> Step {
        attempts += 1
        var pause = Pause.length(policy.firstPause, policy.longestPause, after: attempts - 1, chance: chance)
        switch event {
        case .refused(let refusal):
            guard Self.isForTheMoment(refusal) else { return .report }
            if let asked = refusal.retryAfter {
                guard asked <= policy.longestRetryAfter else { return .report }
                pause = max(pause, asked)
            }
        case .renewed: pause = .zero
        case .untouched: break
        case .ambiguous: guard policy.repeatsAmbiguous else { return .report }
        }
        guard attempts < policy.attempts, now + TimeAmount(pause) < deadline, budget.take() else { return .report }
        return .again(after: pause)
    }

    /// Whether a refusal says something about the moment, and nothing about the notification.
    ///
    /// An answer with a status of the server's fault has been decided by the service: it does not have the notification.
    private static func isForTheMoment(_ refusal: PushRefusal) -> Bool {
        guard let rejection = refusal.reason.rejection else { return refusal.status == 429 || refusal.status >= 500 }
        return rejection.advice == .retryLater
    }
}

/// How many repetitions a client may make: a share of what it sends, and some in reserve.
struct RetryBudget {
    private let reserve: Double
    private let share: Double
    private var left: Double

    init(_ policy: ProviderRetry) {
        reserve = Double(max(0, policy.reserve))
        share = max(0, policy.share)
        left = reserve
    }

    /// An attempt was accepted, or refused for good.
    mutating func earn() {
        left = min(reserve, left + share)
    }

    mutating func take() -> Bool {
        guard left >= 1 else { return false }
        left -= 1
        return true
    }
}
