import CoreMetrics
package import HeraldTrust
package import Logging
package import NIOCore
package import NIOSSL
import Synchronization

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

/// Counts what a door refuses, and tells the operator.
package final class RefusalDesk: Sendable {
    /// Finds what is wrong with a certificate (DER) that TLS did not take; the library only says that it failed.
    package typealias Diagnosis = @Sendable ([UInt8]) -> PeerRefusal?

    private let door: String
    private let logger: Logger
    private let diagnosis: Diagnosis
    private let pace = Mutex(RefusalPace())

    /// - Parameters:
    ///   - door: Its name in metrics and logs.
    ///   - logger: Told of what is not ordinary, at a measured pace.
    ///   - diagnosis: As ``Diagnosis``.
    package init(door: String, logger: Logger, diagnosis: @escaping Diagnosis) {
        self.door = door
        self.logger = logger
        self.diagnosis = diagnosis
    }

    // The calls are on the connection's event loop.

    /// The handshake failed.
    package func noteFailure(_ error: any Error, of tls: NIOSSLServerHandler, _ channel: any Channel) {
        let fault = TLSFault(error)
        guard fault == .untrusted, let certificate = try? tls.peerCertificate?.toDERBytes(),
            let refusal = diagnosis(certificate)
        else { return note(RefusalReason(fault), TLSFault.words(for: error), channel) }
        note(RefusalReason(refusal), refusal.message, channel)
    }

    /// The handshake took too long.
    package func noteSilence(_ channel: any Channel) {
        note(.timeout, "no TLS handshake within the time for it", channel)
    }

    /// There is no room for another connection.
    package func noteLimit(_ channel: any Channel) {
        note(.limit, "as many connections are open as are allowed", channel)
    }

    /// - Parameters:
    ///   - reason: What counts it.
    ///   - words: What is wrong, with nothing that the peer chose.
    ///   - channel: The connection.
    func note(_ reason: RefusalReason, _ words: String, _ channel: any Channel) {
        let dimensions = [("door", door), ("reason", reason.rawValue)]
        Counter(label: "herald_connections_refused_total", dimensions: dimensions).increment()
        let address = channel.remoteAddress?.ipAddress ?? "unknown"
        var metadata: Logger.Metadata = ["door": "\(door)", "reason": "\(words)", "address": "\(address)"]
        guard !reason.isOrdinary else {
            return logger.debug("connection refused", metadata: metadata)
        }
        guard let untold = pace.withLock({ $0.take(reason, now: channel.eventLoop.now) }) else { return }
        if untold > 0 { metadata["since_last_line"] = "\(untold)" }
        logger.notice("connection refused", metadata: metadata)
    }
}
