extension RefusalReason {
    /// The seconds to wait before another try (`retry-after`); nil where there is nothing to wait for, or nobody knows.
    ///
    /// APNs documents no such field; some clients read it. Whatever rate is set, the next notification is free in a second.
    package var retryAfter: Int? {
        switch self {
        case .tooManyProviderTokenUpdates: 1200
        case .tooManyRequests: 1
        case .serviceUnavailable, .shutdown: 10
        default: nil
        }
    }
}
