import NIOCore

/// What is believed about one connection: how much it takes, whether it lives, whether it is leaving.
///
/// It knows no clock and no socket: the time is passed in, and what is to be done is returned.
struct LinkState {
    enum Phase: Hashable {
        /// TLS and HTTP/2 are being agreed on.
        case opening
        case open
        /// Nothing is begun on it any more; what is on it may end.
        case leaving
    }

    /// What is to be done about it.
    enum Action: Hashable {
        case nothing
        case ping
        /// It is dead: close it, and treat what is on it as lost.
        case abandon
    }

    let limits: ProviderConnectionLimits
    private let opened: NIODeadline
    private let openingTime: TimeAmount
    private(set) var phase = Phase.opening
    /// Whether it must show a sign of life before it is used.
    private(set) var isDoubted = false
    private(set) var lastRead: NIODeadline
    private var pinged: NIODeadline?
    private var timeoutsInARow = 0
    /// Whether it ever answered a request.
    private(set) var hasAnswered = false

    init(limits: ProviderConnectionLimits, openingTime: Duration, now: NIODeadline) {
        self.limits = limits
        self.openingTime = TimeAmount(openingTime)
        opened = now
        lastRead = now
    }

    /// How many more requests it takes now.
    /// - Parameters:
    ///   - streamLimit: What the service allows at present.
    ///   - openStreams: How many there are.
    /// - Returns: 0 while it is not to be used.
    func room(streamLimit: Int, openStreams: Int) -> Int {
        guard phase == .open, !isDoubted else { return 0 }
        return max(0, min(streamLimit, limits.streams) - openStreams)
    }

    /// The service's first SETTINGS have come.
    mutating func receivedSettings() {
        if phase == .opening { phase = .open }
    }

    /// Bytes came: it lives.
    mutating func read(now: NIODeadline) {
        lastRead = now
        pinged = nil
        isDoubted = false
    }

    mutating func answered() {
        hasAnswered = true
        timeoutsInARow = 0
    }

    /// A request is there for it; after a long silence it is asked for a sign of life first.
    mutating func wanted(now: NIODeadline) -> Action {
        guard phase == .open, !isDoubted, now - lastRead >= TimeAmount(limits.probeAfter) else { return .nothing }
        return doubt(now: now)
    }

    /// A request got no answer in time.
    ///
    /// One may happen on a sound connection; many in a row do not.
    mutating func timedOut(now: NIODeadline) -> Action {
        timeoutsInARow += 1
        if timeoutsInARow >= limits.timeoutsInARow { leave() }
        return doubt(now: now)
    }

    /// We ourselves were late, by so much: what the service did meanwhile has not been read yet.
    mutating func excuse(_ lateness: TimeAmount) {
        lastRead = lastRead + lateness
        pinged = pinged.map { $0 + lateness }
    }

    /// Nothing is begun on it any more.
    mutating func leave() {
        phase = .leaving
    }

    /// Time has passed.
    mutating func tick(now: NIODeadline, isBusy: Bool) -> Action {
        if phase == .opening { return now - opened >= openingTime ? .abandon : .nothing }
        if let pinged { return now - pinged >= TimeAmount(limits.pingTimeout) ? .abandon : .nothing }
        guard now >= nextPing(isBusy: isBusy) else { return .nothing }
        pinged = now
        return .ping
    }

    /// When time matters to it next.
    func nextCheck(isBusy: Bool) -> NIODeadline {
        if phase == .opening { return opened + openingTime }
        return pinged.map { $0 + TimeAmount(limits.pingTimeout) } ?? nextPing(isBusy: isBusy)
    }

    private func nextPing(isBusy: Bool) -> NIODeadline {
        lastRead + TimeAmount(isBusy ? limits.pingBusyAfter : limits.pingIdleAfter)
    }

    private mutating func doubt(now: NIODeadline) -> Action {
        isDoubted = true
        guard pinged == nil else { return .nothing }
        pinged = now
        return .ping
    }
}
