import NIOCore

/// State of one connection: capacity, health checks, and whether it is draining.
///
/// It has no clock and no socket: callers pass the time and perform the returned action.
struct LinkState {
    enum Phase: Hashable {
        /// TLS and HTTP/2 handshakes.
        case opening
        case open
        /// Takes no new request; those in flight may end.
        case draining
    }

    /// Action for the driver.
    enum Action: Hashable {
        case nothing
        case ping
        /// Close the connection. The service did not answer a ping.
        case close
    }

    let limits: ProviderConnectionLimits
    private let opened: NIODeadline
    private let openingTime: TimeAmount
    private(set) var phase = Phase.opening
    /// Whether it must answer a ping before it is used again.
    private(set) var isProbing = false
    private(set) var lastRead: NIODeadline
    private var pinged: NIODeadline?
    private var timeoutsInARow = 0
    /// Whether it has answered a request.
    private(set) var hasAnswered = false

    init(limits: ProviderConnectionLimits, openingTime: Duration, now: NIODeadline) {
        self.limits = limits
        self.openingTime = TimeAmount(openingTime)
        opened = now
        lastRead = now
    }

    /// Number of further requests that it takes now; 0 if it is not usable.
    func room(streamLimit: Int, openStreams: Int) -> Int {
        guard phase == .open, !isProbing else { return 0 }
        return max(0, min(streamLimit, limits.streams) - openStreams)
    }

    /// Notes the service's first SETTINGS.
    mutating func receivedSettings() {
        if phase == .opening { phase = .open }
    }

    /// Notes received bytes: the connection is alive.
    mutating func read(now: NIODeadline) {
        lastRead = now
        pinged = nil
        isProbing = false
    }

    mutating func answered() {
        hasAnswered = true
        timeoutsInARow = 0
    }

    /// Prepares the next request: pings first after a long silence.
    mutating func probeIfIdle(now: NIODeadline) -> Action {
        guard phase == .open, !isProbing, now - lastRead >= TimeAmount(limits.probeAfter) else { return .nothing }
        return probe(now: now)
    }

    /// Handles a request time-out; many in a row replace the connection.
    mutating func timedOut(now: NIODeadline) -> Action {
        timeoutsInARow += 1
        if timeoutsInARow >= limits.timeoutsInARow { drain() }
        return probe(now: now)
    }

    /// Shifts the timers by the time for which this process was late: it has not yet read what arrived meanwhile.
    mutating func postponeTimers(by lateness: TimeAmount) {
        lastRead = lastRead + lateness
        pinged = pinged.map { $0 + lateness }
    }

    /// Takes no new request.
    mutating func drain() {
        phase = .draining
    }

    /// Checks the timers.
    mutating func tick(now: NIODeadline, isBusy: Bool) -> Action {
        if phase == .opening { return now - opened >= openingTime ? .close : .nothing }
        if let pinged { return now - pinged >= TimeAmount(limits.pingTimeout) ? .close : .nothing }
        guard now >= nextPing(isBusy: isBusy) else { return .nothing }
        pinged = now
        return .ping
    }

    /// When the next timer is due.
    func nextCheck(isBusy: Bool) -> NIODeadline {
        if phase == .opening { return opened + openingTime }
        return pinged.map { $0 + TimeAmount(limits.pingTimeout) } ?? nextPing(isBusy: isBusy)
    }

    private func nextPing(isBusy: Bool) -> NIODeadline {
        lastRead + TimeAmount(isBusy ? limits.pingBusyAfter : limits.pingIdleAfter)
    }

    private mutating func probe(now: NIODeadline) -> Action {
        isProbing = true
        guard pinged == nil else { return .nothing }
        pinged = now
        return .ping
    }
}
