import CoreMetrics
package import HeraldIdentity
package import HeraldTrust
package import Logging
package import NIOCore
package import NIOSSL
import Synchronization

/// Counts and logs the connections that a listener refuses.
///
/// Callers are on the event loop of the connection.
package final class RefusalLog: Sendable {
    /// Finds out why TLS refused a certificate (DER); the TLS library only reports that it did.
    package typealias Diagnosis = @Sendable ([UInt8]) -> PeerRefusal?

    private let listener: String
    private let logger: Logger
    private let diagnosis: Diagnosis
    private let limiter = Mutex(RefusalLogLimiter<HandshakeRefusalReason>())

    /// Makes the log of a listener, by its name in metrics and logs.
    ///
    /// The logger gets one line a minute and reason at most; ordinary refusals at level debug.
    package init(listener: String, logger: Logger, diagnosis: @escaping Diagnosis) {
        self.listener = listener
        self.logger = logger
        self.diagnosis = diagnosis
    }

    /// The handshake failed; `alert` is the one that the client sent without encryption, if it did.
    package func noteFailure(
        _ error: any Error,
        of tls: NIOSSLServerHandler,
        alert: TLSAlert? = nil,
        _ channel: any Channel
    ) {
        let fault = alert.map(TLSFault.alert) ?? TLSFault(error)
        if case .alert(let alert) = fault, let certificateFault = alert.certificateFault {
            let words = "the client does not accept this service's certificate (\(alert)): \(certificateFault)"
            return note(.alert, alert.name == "unknown_ca" ? words + "; give it ca.pem" : words, channel)
        }
        guard fault == .untrusted, let certificate = try? tls.peerCertificate?.toDERBytes(),
            let refusal = diagnosis(certificate)
        else { return note(HandshakeRefusalReason(fault), fault?.description ?? "\(error)", channel) }
        note(HandshakeRefusalReason(refusal), refusal.message, channel)
    }

    /// The handshake took too long.
    package func noteTimeout(_ channel: any Channel) {
        note(.timeout, "the client did not complete the TLS handshake in time", channel)
    }

    /// A refusal whose reason says everything.
    func note(_ reason: HandshakeRefusalReason, _ channel: any Channel) {
        note(reason, reason.words, channel)
    }

    /// The client speaks without TLS.
    package func notePlain(_ channel: any Channel) {
        note(.notTLS, TLSFault.notTLS.description, channel)
    }

    /// An error that nobody caused by intent ended the connection right after the handshake.
    func noteError(_ error: any Error) {
        let words = TLSFault.words(for: error)
        logger.debug("connection refused after its handshake", metadata: ["error": "\(words)"])
    }

    /// Counts and logs a refusal, with a sentence for the log that is never text that the peer chose.
    func note(_ reason: HandshakeRefusalReason, _ words: String, _ channel: any Channel) {
        let dimensions = [("listener", listener), ("reason", reason.rawValue)]
        Counter(label: "herald_connections_refused_total", dimensions: dimensions).increment()
        let address = channel.clientAddress?.description ?? "unknown"
        var metadata: Logger.Metadata = ["listener": "\(listener)", "reason": "\(words)", "address": "\(address)"]
        guard !reason.isOrdinary else {
            return logger.debug("connection refused", metadata: metadata)
        }
        guard let suppressed = limiter.withLock({ $0.take(reason, now: channel.eventLoop.now) }) else { return }
        if suppressed > 0 { metadata["since_last_line"] = "\(suppressed)" }
        logger.notice("connection refused", metadata: metadata)
    }
}
