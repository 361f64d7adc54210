import HeraldModel
import NIOCore

/// When a provider's connection ends: decides, knows no clock and no channel.
///
/// 1. Gives up on a client that does not begin.
/// 2. Ends connections that nobody uses, sooner those of which nobody has shown who he is.
/// 3. Gives up on a client that does not read, or does not end a header block.
/// 4. Stops gracefully: answers first, GOAWAY last. Some clients (those on Python's h2, node-apn) take nothing more from a
///    connection once they have seen a GOAWAY.
struct ConnectionLifetime {
    /// What is to be done now.
    enum Action: Equatable {
        case wait
        /// Tell the client that it is over, and why.
        case sayFarewell(Rejection)
        /// Tell the client that nothing was done for it, nor will be, and why.
        case turnAway(Rejection)
        /// The peer has gone too far or taken too long: no ceremony but a GOAWAY.
        case cutOff
        case close
    }

    /// How the connection is.
    struct Facts {
        /// It has shown who it is.
        var isKnown: Bool
        /// Requests in hand.
        var requestCount: Int
        /// Since when nothing can be written to it.
        var blockedSince: NIODeadline?
        /// A header block has not ended in time.
        var blockIsOverdue: Bool
    }

    private enum State {
        case opening(until: NIODeadline)
        case serving
        /// The service stops: what is in hand is answered until then, and what comes is refused.
        case finishing(until: NIODeadline)
        /// GOAWAY is out, and nothing is answered any more.
        case left
        case closed
    }

    private let timeouts: ConnectionTimeouts
    private var state: State
    private var lastRead: NIODeadline

    init(timeouts: ConnectionTimeouts, now: NIODeadline) {
        self.timeouts = timeouts
        state = .opening(until: now + TimeAmount(timeouts.preface))
        lastRead = now
    }

    /// Whether new requests are refused because the service stops.
    var isStopping: Bool {
        switch state {
        case .finishing, .left, .closed: true
        case .opening, .serving: false
        }
    }

    /// Something came from the client; its SETTINGS, perhaps.
    mutating func received(hasBegun: Bool, now: NIODeadline) {
        lastRead = now
        if hasBegun, case .opening = state { state = .serving }
    }

    /// The service stops.
    mutating func stop(requestCount: Int, now: NIODeadline) -> Action {
        switch state {
        case .opening:
            return end(.close)
        case .serving:
            state = .finishing(until: now + TimeAmount(timeouts.shutdown))
            return settled(requestCount: requestCount)
        case .finishing, .left, .closed:
            return .wait
        }
    }

    /// Looks at what is in hand, after answers have gone out.
    mutating func settled(requestCount: Int) -> Action {
        guard case .finishing = state, requestCount == 0 else { return .wait }
        return leave(.shutdown)
    }

    /// The client is refused before anything was done for it.
    mutating func turnAway(_ rejection: Rejection) -> Action {
        state = .left
        return .turnAway(rejection)
    }

    /// The client is refused from now on; what is in hand is not answered.
    mutating func refuse(_ rejection: Rejection) -> Action {
        leave(rejection)
    }

    /// Looks at the time, and at how the connection is.
    mutating func tick(_ facts: Facts, now: NIODeadline) -> Action {
        if let blocked = facts.blockedSince, blocked + TimeAmount(timeouts.write) <= now { return end(.close) }
        switch state {
        case .opening(let until):
            return until <= now ? end(.close) : .wait
        case .serving:
            if facts.blockIsOverdue { return end(.cutOff) }
            let idle = facts.isKnown ? timeouts.idle : timeouts.idleUnknown
            guard facts.requestCount == 0, lastRead + TimeAmount(idle) <= now else { return .wait }
            return leave(.idleTimeout)
        case .finishing(let until):
            return facts.requestCount == 0 || until <= now ? leave(.shutdown) : .wait
        case .left:
            return end(.close)
        case .closed:
            return .wait
        }
    }

    /// Whether GOAWAY is out, and the connection closes once it is written.
    var hasLeft: Bool {
        if case .left = state { true } else { false }
    }

    private mutating func leave(_ rejection: Rejection) -> Action {
        state = .left
        return .sayFarewell(rejection)
    }

    private mutating func end(_ action: Action) -> Action {
        state = .closed
        return action
    }
}

/// How long a connection may take over what.
package struct ConnectionTimeouts: Sendable {
    /// From the end of the TLS handshake to the client's SETTINGS.
    ///
    /// 5 s: the client sends them without being asked.
    package var preface: Duration = .seconds(5)
    /// Without a byte from a client that has shown who it is.
    ///
    /// 75 minutes: APNs tells providers to keep connections open, and to ping after an hour of silence.
    package var idle: Duration = .seconds(75 * 60)
    /// Without a byte from a client that has shown no certificate and no valid token.
    ///
    /// 5 minutes: enough for one that connects ahead of its first notification.
    package var idleUnknown: Duration = .seconds(5 * 60)
    /// With answers that the client does not read.
    ///
    /// 30 s.
    package var write: Duration = .seconds(30)
    /// From the word to stop to the end of the connection, whatever is in hand.
    ///
    /// 8 s.
    package var shutdown: Duration = .seconds(8)

    package init() {}
}
