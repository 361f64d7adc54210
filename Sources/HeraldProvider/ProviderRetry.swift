/// When a notification is sent again, always with the same `apns-id`.
///
/// What the service provably never looked at (a stream it refused, one above the last of its GOAWAY, one that was not
/// written to its end) moves to another connection at once; that is no retry and cannot double anything. What it
/// refused for the moment (429 and 503, and 500) is repeated after a pause. Where the answer was lost after the whole
/// request was written, the service may or may not have the notification: that is reported
/// (``ProviderError/mayHaveArrived``) unless ``repeatsAmbiguous`` is set.
public struct ProviderRetry: Hashable, Sendable {
    /// How often one notification is sent at most, the first time included; 1 for never again.
    public var attempts = 5
    /// The pause before the second attempt.
    ///
    /// It doubles with each further one, and each is shortened by chance to no less than half. A longer `retry-after` of
    /// the service counts instead.
    public var firstPause: Duration = .milliseconds(500)
    /// The longest pause that the client chooses by itself.
    public var longestPause: Duration = .seconds(30)
    /// The longest `retry-after` that is waited for; a refusal that asks for more is returned as it is.
    public var longestRetryAfter: Duration = .seconds(60)
    /// How many repetitions the client may make at once, beyond the ``share``.
    public var reserve = 100
    /// How many repetitions each answer earns: with 0.1, one in ten.
    ///
    /// When the service refuses everything for the moment, the client so sends a tenth more, not five times as much.
    public var share = 0.1
    /// Whether a notification is sent again when the service may have it already.
    ///
    /// Its device may then get it twice: the same `apns-id` lets the service's log show it, but neither APNs nor Herald
    /// drops the second. A collapse identifier makes the device show one.
    public var repeatsAmbiguous = false
    /// Whether sends wait while the service cannot be reached, up to their time limit, or fail with the first attempt to
    /// connect that does.
    public var waitsForService = true

    /// Makes the default policy.
    public init() {}

    /// Nothing is ever repeated, and nothing waits for a service that is away.
    public static var never: ProviderRetry {
        var retry = ProviderRetry()
        retry.attempts = 1
        retry.waitsForService = false
        return retry
    }
}
