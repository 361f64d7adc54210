import HeraldModel

/// When a row that was not taken is sent again: ever later, never all at once, and not for ever.
package struct RetryPolicy: Sendable, Hashable {
    /// The first pause; each further one is twice as long, up to ``longestPause``.
    package var firstPause: Duration = .seconds(1)
    package var longestPause: Duration = .seconds(300)
    /// How long after it was queued a row is worth sending that does not say so itself.
    package var longestLife: Duration = .seconds(86_400)

    package init() {}

    /// How long to wait after so many tries without an answer that counts.
    /// - Parameters:
    ///   - attempts: How many there were.
    ///   - share: A random number from 0 to 1: half of each pause is left to it.
    /// - Returns: The pause.
    package func pause(after attempts: Int, share: Double) -> Duration {
        let doublings = min(max(attempts - 1, 0), 24)
        let full = min(firstPause * (1 << doublings), longestPause)
        let milliseconds = Double(full.wholeMilliseconds)
        return .milliseconds(Int64(milliseconds / 2 + milliseconds / 2 * min(max(share, 0), 1)))
    }
}
