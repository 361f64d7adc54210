import HeraldModel
import HeraldTrust
import Logging
import Synchronization

/// Renews the server certificate before it expires.
///
/// Open connections keep the old one.
///
/// For a certificate of the operator's own it logs a warning instead.
final class CertificateRenewal: Sendable {
    private struct Checks {
        var next: WallTime
        var last: WallTime
    }

    /// The interval between checks.
    private static let pause = Duration.seconds(86_400)

    private let folder: TrustFolder
    private let clock: any WallClock
    private let logger: Logger
    private let checks: Mutex<Checks>

    init(_ folder: TrustFolder, clock: any WallClock, logger: Logger) {
        self.folder = folder
        self.clock = clock
        self.logger = logger
        let now = clock.now()
        checks = Mutex(Checks(next: now, last: now))
    }

    /// Checks the certificate once a day; cheap otherwise.
    func check() async {
        let now = clock.now()
        let isTime = checks.withLock { checks in
            // A clock that was moved back must not postpone the next check.
            guard now >= checks.next || now < checks.last else { return false }
            checks = Checks(next: now + CertificateRenewal.pause, last: now)
            return true
        }
        if isTime { await renewIfDue(at: now) }
    }

    /// Checks the certificate now.
    func checkNow() async {
        await renewIfDue(at: clock.now())
    }

    private func renewIfDue(at now: WallTime) async {
        do {
            let certificate = try folder.serverCertificate()
            guard certificate.isDue(at: now) else { return }
            guard certificate.isOurs else {
                logger.warning(
                    "the server certificate is your own and expires soon: replace it",
                    metadata: ["expires": "\(certificate.expires.rfc3339)"]
                )
                return
            }
            // The timer and a command may both come here: one of them renews.
            guard try await folder.server.renew(now: now) else { return }
            logger.notice(
                "the server certificate was renewed",
                metadata: ["expired": "\(certificate.expires.rfc3339)"]
            )
        } catch {
            logger.error("the server certificate could not be renewed", metadata: ["error": "\(error)"])
        }
    }
}
