import HeraldListener
import NIOCore

/// Watches a silent connection: no packet for one and a half keep-alives ([MQTT-3.1.2-22]), or no CONNECT in its time.
struct KeepAlive {
    /// The moment of the last packet.
    private(set) var lastPacket: NIODeadline
    /// One and a half times the keep-alive; until the device is admitted, the time for its CONNECT.
    private var timeout: TimeAmount
    /// The end of the time in which the device has to present its tokens; nil if it is over, or they are not required.
    private var tokenDeadline: NIODeadline?
    /// The place of the connection in the wheel that watches ``deadline``.
    var registration: DeadlineRegistration?

    init(connectTimeout: Duration, now: NIODeadline) {
        lastPacket = now
        timeout = TimeAmount(connectTimeout)
    }

    /// Notes a packet, or that the server left bytes unread, not the device.
    mutating func heard(at now: NIODeadline) { lastPacket = now }

    /// Takes the terms of the session over.
    mutating func begin(_ terms: SessionTerms, at now: NIODeadline) {
        lastPacket = now
        timeout = .milliseconds(Int64(terms.keepAliveTimeout * 1000))
        tokenDeadline = terms.tokenGrace.map { now + TimeAmount($0) }
    }

    var deadline: NIODeadline { min(tokenDeadline ?? .distantFuture, lastPacket + timeout) }

    /// Ends the time for the tokens.
    /// - Returns: Whether it was this time that passed, not that of the silence.
    mutating func endTokenGrace() -> Bool {
        guard let end = tokenDeadline, end < lastPacket + timeout else { return false }
        tokenDeadline = nil
        return true
    }
}
