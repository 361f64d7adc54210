import HeraldModel

/// Exponential backoff with jitter.
package struct RetryBackOff: Sendable, Hashable {
    /// First pause; it doubles with each attempt, up to ``longestPause``.
    package var firstPause: Duration = .seconds(1)
    package var longestPause: Duration = .seconds(300)

    /// The pause after so many attempts; `share`, 0 to 1, is the random jitter of half of it.
    package func pause(after attempts: Int, share: Double) -> Duration {
        let doublings = min(max(attempts - 1, 0), 24)
        let full = min(firstPause * (1 << doublings), longestPause)
        let milliseconds = Double(full.wholeMilliseconds)
        return .milliseconds(Int64(milliseconds / 2 + milliseconds / 2 * min(max(share, 0), 1)))
    }
}
