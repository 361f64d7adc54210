import HeraldModel

/// Decides whether a device token may be posted to.
struct DeviceTokenCheck {
    private var rates: TokenRateLimiter

    init(rates: TokenRateLimiter) {
        self.rates = rates
    }

    /// Counts one use of a token, unless it is refused.
    ///
    /// - Parameters:
    ///   - slot: The slot of the token.
    ///   - generation: The generation of the token.
    ///   - registration: The slot's registration, if there is one.
    ///   - now: The present.
    /// - Returns: 400 if nothing is known of the registration; 410 if it ended, or was made again since the token was made;
    ///   429 past the rate; nil if the token may be posted to.
    mutating func refusal(
        of slot: Slot,
        generation: UInt32,
        registration: Registration?,
        at now: WallTime
    ) -> PostDecision? {
        guard let registration else { return .refused(.badDeviceToken, since: nil) }
        guard registration.isLive, registration.generation == generation else {
            return .refused(.unregistered, since: registration.ended)
        }
        return rates.take(slot, at: now) ? nil : .refused(.tooManyRequests, since: nil)
    }
}
