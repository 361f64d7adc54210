import CoreMetrics
package import HeraldTrust
package import Logging
package import NIOCore
package import NIOSSL
import Synchronization

/// Counts what a door refuses, and tells the operator.
///
/// What happens to a connection is told on its event loop.
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
