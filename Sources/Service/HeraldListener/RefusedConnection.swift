import HeraldIdentity
package import HeraldTrust
package import NIOCore

/// A connection that the listener refuses after the TLS handshake.
package struct RefusedConnection: Error {
    package let fault: PeerRefusal
    /// Adds a handler that reports the refusal to the peer in its protocol and then closes; nil closes at once.
    package let reporter: (@Sendable (any Channel) throws -> Void)?

    package init(_ fault: PeerRefusal, reporter: (@Sendable (any Channel) throws -> Void)? = nil) {
        self.fault = fault
        self.reporter = reporter
    }
}

/// Why a listener refused a connection; the `reason` label of `herald_connections_refused_total`.
enum HandshakeRefusalReason: String, Hashable, CaseIterable {
    // MARK: - Certificates
    case noCertificate = "no_certificate"
    case otherAuthority = "other_authority"
    case expired
    case notYetValid = "not_yet_valid"
    case revoked
    case unknownRevocation = "no_revocation_list"
    case unfit
    // MARK: - TLS
    case alert
    case version
    case notTLS = "no_tls"
    case failed
    // MARK: - Connection
    case ended
    case timeout
    /// The listener is full of known connections.
    case limit
    /// The listener is full, and this was the unknown connection that makes way.
    case displaced
    /// Its network has too many unknown connections, and this was the one that makes way.
    case network
    /// It stayed unknown for too long.
    case unknown
    case proxyHeader = "proxy_header"
    /// The client speaks HTTP/1.1 to a listener that serves HTTP/2 only.
    case http1

    init(_ fault: PeerRefusal) {
        self =
            switch fault.code {
            case .wrongAuthority: .otherAuthority
            case .expired: .expired
            case .notYetValid: .notYetValid
            case .revoked: .revoked
            case .revocationUnknown: .unknownRevocation
            case .malformed, .isAuthority, .wrongPurpose, .weakKey, .noIdentity: .unfit
            }
    }

    init(_ fault: TLSFault?) {
        self =
            switch fault {
            case .alert: .alert
            case .untrusted: .otherAuthority
            case .noCertificate: .noCertificate
            case .version: .version
            case .notTLS: .notTLS
            case .other: .failed
            case .ended, nil: .ended
            }
    }

    /// The sentence for the log, where the reason alone determines it.
    var words: String {
        switch self {
        case .limit: "the listener has as many known connections as it allows"
        case .displaced: "the listener is full: an old connection without authentication made way"
        case .network: "too many connections without authentication from this network: an old one made way"
        case .unknown: "the client did not authenticate in time"
        default: rawValue
        }
    }

    /// Whether it also happens when nothing is wrong: load balancers probe whether a port is open.
    var isOrdinary: Bool {
        self == .ended || self == .timeout
    }
}

/// Limits the log lines about refusals: the first of each reason, then at most one a minute.
///
/// Anybody can open connections; no peer may fill the log. Apart from `RateLimit`, because it counts what it suppressed.
package struct RefusalLogLimiter<Reason: Hashable> {
    private static var pause: TimeAmount { .seconds(60) }

    private struct LastLine {
        var time: NIODeadline
        var suppressed = 0
    }

    private var lastLines: [Reason: LastLine] = [:]

    package init() {}

    /// Counts one more refusal.
    /// - Returns: How many refusals were not logged since the last line; nil if this one is not logged either.
    package mutating func take(_ reason: Reason, now: NIODeadline) -> Int? {
        guard var line = lastLines[reason], now < line.time + Self.pause else {
            return lastLines.updateValue(LastLine(time: now), forKey: reason)?.suppressed ?? 0
        }
        line.suppressed += 1
        lastLines[reason] = line
        return nil
    }
}
