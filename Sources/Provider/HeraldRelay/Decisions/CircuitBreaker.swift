package import HeraldModel

/// Circuit breaker of one route: opens after a failed connect or 20 time-outs in a row; the pause grows.
package struct CircuitBreaker: Sendable {
    /// Number of consecutive time-outs that open it.
    package static let timeoutThreshold = 20

    private let backOff: RetryBackOff
    private var failures = 0
    private var timeouts = 0
    /// When it closes for the next attempt; nil while it is closed.
    private var until: WallTime?
    /// Why it is open; nil while it is closed.
    package private(set) var reason: String?

    package init(_ backOff: RetryBackOff) {
        self.backOff = backOff
    }

    /// When a row may be sent; nil if now.
    package func openUntil(at now: WallTime) -> WallTime? {
        guard let until, now < until else { return nil }
        return until
    }

    package mutating func succeeded() {
        (failures, timeouts, until, reason) = (0, 0, nil, nil)
    }

    /// Notes a time-out.
    package mutating func timedOut(_ reason: String, at now: WallTime, share: Double) {
        timeouts += 1
        if timeouts >= CircuitBreaker.timeoutThreshold || failures > 0 { failed(reason, at: now, share: share) }
    }

    /// Notes a failed connect; while it is open, further failures do not count.
    package mutating func failed(_ reason: String, at now: WallTime, share: Double) {
        self.reason = reason
        if let until, now < until { return }
        failures += 1
        until = now + min(backOff.pause(after: failures, share: share), .seconds(60))
    }
}
