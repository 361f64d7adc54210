package import HeraldTrust
package import NIOCore

/// A connection that is not taken after its handshake.
package struct DoorRefusal: Error {
    /// What is wrong.
    package let fault: PeerRefusal
    /// Puts a handler into the pipeline that tells the peer so in its protocol and then closes; nil closes at once.
    package let farewell: (@Sendable (any Channel) throws -> Void)?

    package init(_ fault: PeerRefusal, farewell: (@Sendable (any Channel) throws -> Void)? = nil) {
        self.fault = fault
        self.farewell = farewell
    }
}

/// Why a connection came to nothing before its protocol was spoken.
enum RefusalReason: String, Hashable, CaseIterable {
    // Of certificates.
    case noCertificate = "no_certificate"
    case otherAuthority = "other_authority"
    case expired
    case notYetValid = "not_yet_valid"
    case revoked
    case unknownRevocation = "no_revocation_list"
    case unfit
    // Of TLS.
    case alert
    case version
    case notTLS = "no_tls"
    case failed
    // Of the connection.
    case ended
    case timeout
    case limit

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

    /// Whether it happens all day without anything being wrong: load balancers look whether a port is open.
    var isOrdinary: Bool {
        self == .ended || self == .timeout
    }
}

/// Decides which refusals get a line in the log: the first of each reason, and then no more than one in a minute.
///
/// Anybody can open connections; none is to fill the log with them.
struct RefusalPace {
    private static let pause = TimeAmount.seconds(60)

    private struct Silence {
        var since: NIODeadline
        var untold = 0
    }

    private var silences: [RefusalReason: Silence] = [:]

    /// One more refusal.
    /// - Returns: How many were not told since the last line; nil if this one is not to be told either.
    mutating func take(_ reason: RefusalReason, now: NIODeadline) -> Int? {
        guard var silence = silences[reason], now < silence.since + Self.pause else {
            return silences.updateValue(Silence(since: now), forKey: reason)?.untold ?? 0
        }
        silence.untold += 1
        silences[reason] = silence
        return nil
    }
}
