/// How long a device waits before it connects again: longer after each failure, and never in step with others.
///
/// The wait is drawn anew between half the present bound and the bound, which doubles with each failure, so that a fleet
/// that lost its service at one moment does not come back at one moment.
public struct Backoff: Hashable, Sendable {
    /// The bound after the first failure.
    public var first: Duration
    /// The largest bound.
    public var longest: Duration

    /// Makes a back-off: 1 s at first, 2 minutes at the longest.
    public init(first: Duration = .seconds(1), longest: Duration = .seconds(120)) {
        self.first = first
        self.longest = longest
    }

    /// The wait before an attempt.
    /// - Parameters:
    ///   - failures: How many attempts failed in a row; 0 and less wait like 1.
    ///   - generator: Where the jitter comes from.
    /// - Returns: At least half the bound, at most the bound.
    public func wait(afterFailures failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        var bound = first
        var remaining = failures
        while remaining > 1, bound < longest {
            bound = min(bound * 2, longest)
            remaining -= 1
        }
        return bound * Double.random(in: 0.5...1, using: &generator)
    }
}
