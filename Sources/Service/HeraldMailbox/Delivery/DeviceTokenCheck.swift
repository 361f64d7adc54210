import HeraldModel

/// Decides whether a device token may be posted to.
struct DeviceTokenCheck {
    private var rates: TokenRateLimiter

    init(rates: TokenRateLimiter) {
        self.rates = rates
    }

    /// Counts one use of the token that a notification was posted to, unless it is refused.
    /// - Returns: 400 if nothing is known of the registration; 410 if it ended, or was made again since the token was made;
    ///   429 past the rate; nil if the token may be posted to.
    mutating func refusal(of envelope: Envelope, registration: Registration?) -> PostDecision? {
        guard let registration else { return .refused(.badDeviceToken, since: nil) }
        guard registration.isLive(in: envelope.generation) else {
            return .refused(.unregistered, since: registration.ended)
        }
        let notification = envelope.notification
        return rates.take(notification.slot, at: notification.received) ? nil : .refused(.tooManyRequests, since: nil)
    }
}
