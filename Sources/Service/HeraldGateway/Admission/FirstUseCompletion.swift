import HeraldMailbox
import HeraldModel
import HeraldTrust

/// The completion of a request for a topic that no team owns.
///
/// An accepted request claims the topic for its team, and is answered when the claim is durable. If the claim is undecided,
/// the provider has to send again. A refused request claims nothing.
final class FirstUseCompletion: CompletionHandler {
    private let reservation: FirstUses.Reservation
    private let firstUses: FirstUses
    private let completions: any CompletionHandler

    /// `completions` gets the outcome.
    init(_ reservation: FirstUses.Reservation, _ firstUses: FirstUses, completions: any CompletionHandler) {
        self.reservation = reservation
        self.firstUses = firstUses
        self.completions = completions
    }

    func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        switch outcome {
        case .accepted:
            firstUses.claim(reservation) { [completions] outcome in
                completions.settle(number, outcome == .decided ? .accepted : .refused(.serviceUnavailable))
            }
        case .refused, .unknown, .decideAgain:
            firstUses.cancel(reservation)
            completions.settle(number, outcome)
        }
    }

    /// Follows the decision on the request.
    ///
    /// - Returns: The decision, in which an accepted request is pending until the claim is durable.
    func follow(_ decision: PostDecision, number: UInt64) -> PostDecision {
        switch decision {
        case .pending: return decision
        case .accepted:
            settle(number, .accepted)
            return .pending
        case .refused:
            firstUses.cancel(reservation)
            return decision
        }
    }
}

/// The decision on a request for a topic that no team owned when it was authorized.
enum FirstUseDecision {
    /// The team owns the topic, or its credential names it: there is nothing to claim.
    case proceed
    case claim(FirstUseCompletion)
    /// Another team has become the owner.
    case taken(Topic)
    /// The request's team has as many topics by use as it may have.
    case overLimit(Topic)
    /// The trust store is too slow over an earlier claim of the topic.
    case undecided

    var claim: FirstUseCompletion? {
        if case .claim(let claim) = self { claim } else { nil }
    }

    static let undecidedRefusal = Refusal(
        .serviceUnavailable,
        "Herald cannot record at present which team owns the topic; send the request again later"
    )
}

extension Admission {
    /// Reserves the topic of a first use; nil stands for a topic whose owner is known.
    func begin(_ use: TopicUse?, completions: any CompletionHandler) -> FirstUseDecision {
        guard let use else { return .proceed }
        switch firstUses.reserve(use) {
        case .owned: return .proceed
        case .reserved(let reservation):
            return .claim(FirstUseCompletion(reservation, firstUses, completions: completions))
        case .taken: return use.isNamed ? .proceed : .taken(use.topic)
        case .overLimit: return use.isNamed ? .proceed : .overLimit(use.topic)
        case .undecided: return .undecided
        }
    }
}
