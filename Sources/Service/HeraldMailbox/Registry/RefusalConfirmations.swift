import CoreMetrics
package import HeraldModel
import Synchronization

/// Catches up with the other nodes before Herald refuses or discards something that one of them may just have made possible.
///
/// A provider deletes a device token that is answered 400 or 410, and a notification for an app that is switched off is lost.
/// So before either a node learns what all nodes had stored when the request came, and decides again. A node that has stood
/// still does the same before it accepts.
package final class RefusalConfirmations: Sendable {
    /// Limit of confirmations under way; past it, requests are answered 503.
    ///
    /// One takes some milliseconds, and all of them share the barriers of a stream. Those on ``SharedPart/trust`` have a limit
    /// of their own: forged tokens take no places of the others.
    static let limit = 1024
    /// The time for which a refusal is remembered that was confirmed: a provider that repeats a dead token costs nothing.
    static let memory = Duration.seconds(2)
    /// Limit of remembered refusals; past it, all are forgotten.
    static let remembered = 10_000

    private struct State {
        /// By whether they are on ``SharedPart/trust``.
        var underWay: [Bool: Int] = [:]
        var confirmed: [RegisteredSlot: WallTime] = [:]
    }

    private let shared: any SharedState
    private let clock: any WallClock
    private let state = Mutex(State())
    private let refused = RefusalConfirmations.counter("refused")
    private let changed = RefusalConfirmations.counter("changed")
    private let failed = RefusalConfirmations.counter("failed")
    private let overLimit = RefusalConfirmations.counter("over_limit")

    package init(shared: any SharedState, clock: any WallClock) {
        self.shared = shared
        self.clock = clock
    }

    private static func counter(_ end: String) -> Counter {
        Counter(label: MetricName.clusterConfirmations, dimensions: [("end", end)])
    }

    /// Catches up on the part of the shared state on which a refusal rests, and then lets the caller decide again.
    ///
    /// `decide` is called once, from any thread, possibly before this returns, unless the limit is reached: with
    /// whether this node knows everything now. If not, the answer is 503.
    /// - Returns: false if too many confirmations are under way: the answer is 503.
    package func confirm(_ part: SharedPart, _ decide: @escaping @Sendable (_ isCaughtUp: Bool) -> Void) -> Bool {
        let isOnTrust = part == .trust
        let hasRoom = state.withLock { state in
            guard state.underWay[isOnTrust, default: 0] < Self.limit else { return false }
            state.underWay[isOnTrust, default: 0] += 1
            return true
        }
        guard hasRoom else {
            overLimit.increment()
            return false
        }
        shared.catchUp(part) { [self] result in
            state.withLock { $0.underWay[isOnTrust, default: 1] -= 1 }
            switch result {
            case .success: decide(true)
            case .failure:
                failed.increment()
                decide(false)
            }
        }
        return true
    }

    /// Whether this node may be behind with a part, and catches up before it accepts.
    package func isBehind(_ part: SharedPart) -> Bool { shared.isBehind(part) }

    /// Counts the end of a confirmation after which the caller has decided again.
    package func ended(isRefused: Bool) {
        if isRefused { refused.increment() } else { changed.increment() }
    }

    // MARK: - Registrations

    /// Remembers that the refusal of a registration's token was confirmed.
    func remember(_ slot: RegisteredSlot) {
        let now = clock.now()
        state.withLock { state in
            if state.confirmed.count >= Self.remembered { state.confirmed = [:] }
            state.confirmed[slot] = now
        }
    }

    /// Whether the refusal of a registration's token was confirmed within ``memory``.
    func isConfirmed(_ slot: RegisteredSlot) -> Bool {
        let now = clock.now()
        return state.withLock { state in
            guard let time = state.confirmed[slot] else { return false }
            if time <= now, now < time + Self.memory { return true }
            state.confirmed[slot] = nil
            return false
        }
    }
}

extension PostOffice {
    /// Confirms a decision in a cluster, if it is a refusal of the device token.
    func confirm(
        _ decision: PostDecision,
        _ envelope: Envelope,
        _ again: @escaping @Sendable (PostOffice) -> PostDecision
    ) -> PostDecision {
        guard case .refused(let reason, _) = decision, reason == .badDeviceToken || reason == .unregistered else {
            return decision
        }
        guard let confirmations, isUncertain(envelope), !confirmations.isConfirmed(envelope.registeredSlot) else {
            noteDeadToken(decision, envelope)
            return decision
        }
        return catchUp(envelope, confirmations, again)
    }

    /// Decides in a cluster about a notification that would be discarded, because its app is switched off as far as this
    /// node knows, and about all of them on a node that may be behind.
    ///
    /// A generation stays when the user switches the app on again, so nothing is remembered.
    /// - Returns: nil if what this node knows decides.
    func confirmFirst(
        _ envelope: Envelope,
        _ decide: @escaping @Sendable (PostOffice) -> PostDecision
    ) -> PostDecision? {
        let part = SharedPart.registrations(of: envelope.notification.slot.device)
        guard let confirmations, confirmations.isBehind(part) || isSwitchedOff(envelope) else { return nil }
        return catchUp(envelope, confirmations, decide)
    }

    private func catchUp(
        _ envelope: Envelope,
        _ confirmations: RefusalConfirmations,
        _ decide: @escaping @Sendable (PostOffice) -> PostDecision
    ) -> PostDecision {
        let part = SharedPart.registrations(of: envelope.notification.slot.device)
        let isUnderWay = confirmations.confirm(part) { [self] isCaughtUp in
            guard isCaughtUp else { return envelope.settle(.refused(.serviceUnavailable)) }
            let isSwitchedOff = isSwitchedOff(envelope)
            let decision = decide(self)
            noteDeadToken(decision, envelope)
            switch decision {
            case .pending: confirmations.ended(isRefused: isSwitchedOff)
            case .accepted:
                confirmations.ended(isRefused: isSwitchedOff)
                envelope.settle(.accepted)
            case .refused(let reason, let since):
                confirmations.ended(isRefused: true)
                if isUncertain(envelope) { confirmations.remember(envelope.registeredSlot) }
                envelope.settle(.refused(reason, since: since))
            }
        }
        return isUnderWay ? .pending : .refused(.serviceUnavailable, since: nil)
    }

    /// Whether the user does not want the app's notifications, as far as this node knows.
    private func isSwitchedOff(_ envelope: Envelope) -> Bool {
        guard let known = registration(envelope.notification.slot) else { return false }
        return known.isLive(in: envelope.generation) && !known.isEnabled
    }

    /// Whether another node may have made the registration of the token.
    ///
    /// A generation that has ended here never comes back.
    private func isUncertain(_ envelope: Envelope) -> Bool {
        guard let known = registration(envelope.notification.slot) else { return true }
        return known.generation < envelope.generation || known.isLive(in: envelope.generation)
    }
}
