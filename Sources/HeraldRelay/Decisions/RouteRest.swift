package import HeraldModel

/// Whether a service is worth a try: after it could not be reached, or was silent several times on end, not before a pause
/// is over, which grows.
package struct RouteRest: Sendable {
    /// So many requests without an answer, and none with one between them, mean the service and not the requests.
    package static let patience = 20

    private let policy: RetryPolicy
    private var failures = 0
    private var silences = 0
    /// Until when nothing is sent; nil while it works.
    package private(set) var until: WallTime?
    /// Why.
    package private(set) var reason: String?

    package init(_ policy: RetryPolicy) {
        self.policy = policy
    }

    /// Until when a row has to wait; nil if it may be sent now.
    package func wait(at now: WallTime) -> WallTime? {
        guard let until, now < until else { return nil }
        return until
    }

    package mutating func answered() {
        (failures, silences, until, reason) = (0, 0, nil, nil)
    }

    /// A request got no answer.
    package mutating func silent(_ reason: String, at now: WallTime, share: Double) {
        silences += 1
        if silences >= RouteRest.patience || failures > 0 { failed(reason, at: now, share: share) }
    }

    /// It could not be reached; of many requests that failed at a time, one counts.
    package mutating func failed(_ reason: String, at now: WallTime, share: Double) {
        self.reason = reason
        if let until, now < until { return }
        failures += 1
        until = now + min(policy.pause(after: failures, share: share), .seconds(60))
    }
}
