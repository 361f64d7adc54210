/// How long to wait before the next attempt to connect: twice as long after each failure, and never all devices at once.
struct BackOff: Hashable, Sendable {
    let shortest: Duration
    let longest: Duration
    private var bound: Duration

    init(shortest: Duration = .seconds(1), longest: Duration = .seconds(120)) {
        self.shortest = shortest
        self.longest = longest
        bound = shortest
    }

    /// The pause after a failure, between half of the bound and all of it as `random` goes from 0 to 1.
    mutating func pause(random: Double) -> Duration {
        let pause = bound * (0.5 + 0.5 * min(max(random, 0), 1))
        bound = min(bound * 2, longest)
        return pause
    }

    /// The next pause is the longest: for a service that asks to be left alone.
    mutating func yield() {
        bound = longest
    }

    /// Begins anew, once a connection has worked.
    mutating func reset() {
        bound = shortest
    }
}
