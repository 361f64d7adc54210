/// Circuit breaker of one route: opens after a failed connect or 20 time-outs in a row; the pause grows.
///
/// The wall clock does not count: a step of it neither ends nor prolongs a pause.
package struct CircuitBreaker: Sendable {
    /// Number of consecutive time-outs that open it.
    package static let timeoutThreshold = 20

    private let backOff: RetryBackOff
    private var failures = 0
    private var timeouts = 0
    /// When it closes for the next attempt; nil while it is closed.
    private var until: ContinuousClock.Instant?
    /// Why it is open; nil while it is closed.
    package private(set) var reason: String?

    package init(_ backOff: RetryBackOff) {
        self.backOff = backOff
    }

    /// Time until a row may be sent; nil if now.
    package func pause(at now: ContinuousClock.Instant) -> Duration? {
        guard let until, now < until else { return nil }
        return until - now
    }

    package mutating func succeeded() {
        (failures, timeouts, until, reason) = (0, 0, nil, nil)
    }

    package mutating func timedOut(_ reason: String, at now: ContinuousClock.Instant, share: Double) {
        timeouts += 1
        if timeouts >= CircuitBreaker.timeoutThreshold || failures > 0 { failed(reason, at: now, share: share) }
    }

    /// Notes a failed connect; while it is open, further failures do not count.
    package mutating func failed(_ reason: String, at now: ContinuousClock.Instant, share: Double) {
        self.reason = reason
        if let until, now < until { return }
        failures += 1
        until = now + min(backOff.pause(after: failures, share: share), .seconds(60))
    }
}
