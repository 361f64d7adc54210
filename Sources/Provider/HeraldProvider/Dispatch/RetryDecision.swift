import HeraldModel
import NIOCore

/// Decides what follows an attempt: report its outcome, or retry after a pause.
struct RetryDecision {
    enum Event {
        /// The service refused the request.
        case refused(PushRefusal)
        /// An expired provider token was replaced.
        case renewed
        /// The service did not process the request.
        case untouched
        /// The service may have the notification.
        case ambiguous
    }

    enum Step: Hashable {
        /// Report the outcome to the caller.
        case report
        case again(after: Duration)
    }

    let policy: ProviderRetry
    let deadline: NIODeadline
    /// Number of attempts so far.
    private(set) var attempts = 0

    /// Handles an attempt that ended without acceptance.
    mutating func next(_ event: Event, now: NIODeadline, chance: Double, budget: inout RetryBudget) -> Step {
        attempts += 1
        var pause = Pause.length(policy.firstPause, policy.longestPause, after: attempts - 1, chance: chance)
        switch event {
        case .refused(let refusal):
            guard Self.isTemporary(refusal) else { return .report }
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

    /// Whether a refusal is temporary.
    ///
    /// A status of 500 or more is an answer too: the service does not have the notification.
    private static func isTemporary(_ refusal: PushRefusal) -> Bool {
        guard let refusalReason = refusal.reason.known else { return refusal.status == 429 || refusal.status >= 500 }
        return refusalReason.advice == .retryLater
    }
}

/// Limits the retries of a client to a share of its answers, plus a reserve.
///
/// Apart from `RateLimit`, because answers regain it, not time.
struct RetryBudget {
    private let reserve: Double
    private let share: Double
    private var left: Double

    init(_ policy: ProviderRetry) {
        reserve = Double(max(0, policy.reserve))
        share = max(0, policy.share)
        left = reserve
    }

    /// Notes a final answer.
    mutating func earn() {
        left = min(reserve, left + share)
    }

    mutating func take() -> Bool {
        guard left >= 1 else { return false }
        left -= 1
        return true
    }
}
