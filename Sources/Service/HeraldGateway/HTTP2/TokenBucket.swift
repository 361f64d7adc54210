import NIOCore

/// Token bucket: a rate limit with a burst, for work that a peer causes beside its requests.
///
/// Apart from `RateLimit`, because tokens are taken and earned in numbers, and a refusal empties the bucket. Normal
/// traffic stays far below the limit, because each request earns tokens (``earn(_:)``).
struct TokenBucket {
    /// Maximum and initial number of tokens.
    let capacity: Double
    /// Tokens per second.
    let perSecond: Double
    private var level: Double
    private var filled: NIODeadline

    init(capacity: Int, perSecond: Int, now: NIODeadline) {
        self.capacity = Double(capacity)
        self.perSecond = Double(perSecond)
        level = Double(capacity)
        filled = now
    }

    /// Takes tokens.
    /// - Returns: false if there are too few; the bucket is empty then.
    mutating func take(_ tokens: Int, now: NIODeadline) -> Bool {
        if now > filled {
            level = min(capacity, level + Double((now - filled).nanoseconds) * perSecond / 1_000_000_000)
            filled = now
        }
        level -= Double(tokens)
        guard level >= 0 else {
            level = 0
            return false
        }
        return true
    }

    /// Puts tokens back, up to the capacity.
    mutating func earn(_ tokens: Int) {
        level = min(capacity, level + Double(tokens))
    }
}
