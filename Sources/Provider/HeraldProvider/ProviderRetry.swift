/// Retry policy; every attempt has the same `apns-id`.
///
/// A request that the service provably did not process moves to another connection at once: refused stream, above the
/// last stream of a GOAWAY, or not completely written. That is not a retry and cannot duplicate a notification. Statuses
/// 429, 500 and 503 are retried after a pause. If the answer to a completely written request is lost, the service may
/// have the notification: the client reports it (``ProviderError/mayHaveArrived``) unless ``repeatsAmbiguous`` is set.
public struct ProviderRetry: Hashable, Sendable {
    /// Maximum number of attempts, the first included; 1 means no retry; default 5.
    public var attempts = 5
    /// Pause before the second attempt; default 500 ms.
    ///
    /// It doubles with each attempt; random jitter shortens it by up to half. A longer `retry-after` takes precedence.
    public var firstPause: Duration = .milliseconds(500)
    /// Longest pause that the client chooses itself; default 30 s.
    public var longestPause: Duration = .seconds(30)
    /// Longest `retry-after` that the client waits for; it returns a refusal that asks for more; default 60 s.
    public var longestRetryAfter: Duration = .seconds(60)
    /// Retries that the client may make in a burst, beyond ``share``; default 100.
    public var reserve = 100
    /// Retries that each final answer earns: 0.1 allows one retry for ten answers; default: 0.1.
    ///
    /// It limits the extra load on a service that refuses everything to a tenth.
    public var share = 0.1
    /// Whether to resend a notification that the service may already have; default false.
    ///
    /// The device may then show it twice: neither APNs nor Herald drops a second notification with the same `apns-id`.
    /// With a collapse identifier the device shows only the newest.
    public var repeatsAmbiguous = false
    /// Whether sends wait, up to their time limit, while the service is unreachable.
    ///
    /// If false, they fail with the first failed connect; default true.
    public var waitsForService = true

    /// Makes the default policy.
    public init() {}

    /// A policy without retries that also fails at once while the service is unreachable.
    public static var never: ProviderRetry {
        var retry = ProviderRetry()
        retry.attempts = 1
        retry.waitsForService = false
        return retry
    }
}
