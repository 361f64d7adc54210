import HeraldListener
import HeraldModel
import HeraldWeb

/// Rate limiter for wrong codes: each network, and all together.
///
/// Past the common limit, networks without a wrong code may still try. So a flood does not lock out others, and one try for
/// each network does not find a secret of 85 bits.
struct CodeThrottle: Sendable {
    private var networks: KeyedRateLimiter<ClientNetwork>
    private var all: KeyedRateLimiter<Bool>

    init(_ configuration: ActivationConfiguration) {
        networks = KeyedRateLimiter(
            burst: configuration.wrongCodes,
            interval: configuration.wrongCodeInterval,
            capacity: configuration.remembered
        )
        all = KeyedRateLimiter(
            burst: configuration.wrongCodesInAll,
            interval: configuration.wrongCodeIntervalInAll,
            capacity: 1
        )
    }

    /// Time until a network may try a code; nil if now.
    ///
    /// A new network waits for room in a full table.
    mutating func wait(_ network: ClientNetwork, at now: WallTime) -> Duration? {
        if let wait = networks.wait(network, at: now) { return wait }
        guard let wait = all.wait(true, at: now) else { return nil }
        return networks.remembers(network, at: now) ? wait : nil
    }

    /// Counts a wrong code.
    /// - Returns: Whether to log it, which a flood suppresses.
    @discardableResult
    mutating func wasWrong(_ network: ClientNetwork, at now: WallTime) -> Bool {
        let isLogged = all.wait(true, at: now) == nil
        networks.take(network, at: now)
        if isLogged { all.take(true, at: now) }
        return isLogged
    }
}
