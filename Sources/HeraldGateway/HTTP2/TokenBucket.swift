import NIOCore

/// What a peer may make us do that is not a request: so much at once, and so much a second.
///
/// A value without a clock: whoever takes says when. Honest traffic stays far below, since what belongs to a request is
/// paid for by the request (``earn(_:)``).
struct TokenBucket {
    /// The most tokens that it holds, and what it holds at first.
    let capacity: Double
    /// Tokens that come back each second.
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
    /// - Returns: false if there are not that many; the bucket is empty then.
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
