import HeraldModel
import NIOCore

/// Decides when a provider's connection ends; has no clock and no channel.
///
/// 1. Closes a client that does not send its SETTINGS.
/// 2. Ends idle connections.
/// 3. Closes a client that does not read, or does not end a header block.
/// 4. Stops gracefully: answers first, GOAWAY last. Some clients (Python's h2, node-apn) read nothing after a GOAWAY.
struct ConnectionLifetime {
    /// The next action.
    enum Action: Equatable {
        case wait
        /// Send GOAWAY with the reason.
        case goAway(RefusalReason)
        /// Send GOAWAY with the reason, and declare all requests unprocessed.
        case reject(RefusalReason)
        /// Send GOAWAY with ENHANCE_YOUR_CALM and close: the peer exceeded a limit.
        case cutOff
        case close
    }

    /// The connection's state at a tick.
    struct Facts {
        /// Pending requests.
        var requestCount: Int
        /// Since when the client reads nothing; nil if it reads.
        var blockedSince: NIODeadline?
        var blockIsOverdue: Bool
    }

    private enum State {
        case opening(until: NIODeadline)
        case serving
        /// The service stops: pending requests are answered until then, new ones are refused.
        case finishing(until: NIODeadline)
        /// GOAWAY is sent; nothing is answered any more.
        case goneAway
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
        case .finishing, .goneAway, .closed: true
        case .opening, .serving: false
        }
    }

    /// Bytes arrived; `hasBegun` once the client's SETTINGS are among them.
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
        case .finishing, .goneAway, .closed:
            return .wait
        }
    }

    /// Answers were written; `requestCount` requests are still pending.
    mutating func settled(requestCount: Int) -> Action {
        guard case .finishing = state, requestCount == 0 else { return .wait }
        return goAway(.shutdown)
    }

    /// The client is refused before any of its requests.
    mutating func reject(_ refusalReason: RefusalReason) -> Action {
        state = .goneAway
        return .reject(refusalReason)
    }

    /// The client is refused from now on; pending requests are not answered.
    mutating func refuse(_ refusalReason: RefusalReason) -> Action {
        goAway(refusalReason)
    }

    /// Checks the timeouts.
    mutating func tick(_ facts: Facts, now: NIODeadline) -> Action {
        if let blocked = facts.blockedSince, blocked + TimeAmount(timeouts.write) <= now { return end(.close) }
        switch state {
        case .opening(let until):
            return until <= now ? end(.close) : .wait
        case .serving:
            if facts.blockIsOverdue { return end(.cutOff) }
            guard facts.requestCount == 0, lastRead + TimeAmount(timeouts.idle) <= now else { return .wait }
            return goAway(.idleTimeout)
        case .finishing(let until):
            return facts.requestCount == 0 || until <= now ? goAway(.shutdown) : .wait
        case .goneAway:
            return end(.close)
        case .closed:
            return .wait
        }
    }

    /// Whether GOAWAY is sent, and the connection closes once it is written.
    var hasSentGoAway: Bool {
        if case .goneAway = state { true } else { false }
    }

    private mutating func goAway(_ refusalReason: RefusalReason) -> Action {
        state = .goneAway
        return .goAway(refusalReason)
    }

    private mutating func end(_ action: Action) -> Action {
        state = .closed
        return action
    }
}

/// The timeouts of a provider's connection.
package struct ConnectionTimeouts: Sendable {
    /// From the end of the TLS handshake to the client's SETTINGS.
    ///
    /// 5 s: the client sends them without being asked.
    package var preface: Duration = .seconds(5)
    /// Without a byte from the client.
    ///
    /// 75 minutes: APNs tells providers to keep connections open, and to ping after an hour of silence.
    package var idle: Duration = .seconds(75 * 60)
    /// With unread answers.
    ///
    /// 30 s.
    package var write: Duration = .seconds(30)
    /// From the stop of the service to the end of the connection, even with pending requests.
    ///
    /// 8 s.
    package var shutdown: Duration = .seconds(8)
}
