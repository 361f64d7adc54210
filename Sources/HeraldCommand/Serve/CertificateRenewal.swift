import HeraldModel
import HeraldTrust
import Logging

/// Sees to it that a service which runs for years shows a server certificate that is good.
///
/// One of ours is exchanged when it is near its end; connections stay, new ones see the new certificate. Of one that users
/// brought, the log says that its end is near.
struct CertificateRenewal {
    /// How long after a failure it is tried again, and the end of a foreign certificate is told again.
    private static let pause = Duration.seconds(86_400)

    private let folder: TrustFolder
    private let clock: any WallClock
    private let logger: Logger
    /// Nothing has to be looked at before.
    private var next: WallTime
    /// What ``next`` was reckoned from.
    private var reckoned: WallTime

    init(_ folder: TrustFolder, clock: any WallClock, logger: Logger) {
        self.folder = folder
        self.clock = clock
        self.logger = logger
        reckoned = clock.now()
        next = reckoned
    }

    /// To be called every now and then; reads no file unless a day has passed.
    mutating func look() {
        let now = clock.now()
        // A clock that was moved back makes nothing due, and must not put off what will be.
        guard now >= next || now < reckoned else { return }
        reckoned = now
        next = now + CertificateRenewal.pause
        do {
            let certificate = try folder.serverCertificate()
            guard certificate.isDue(at: now) else { return }
            guard certificate.isOurs else {
                logger.warning(
                    "the server certificate is your own and ends soon: put another in its place",
                    metadata: ["expires": "\(certificate.expires.rfc3339)"]
                )
                return
            }
            try folder.renewServerCertificate(now: now)
            logger.notice(
                "the server certificate was exchanged for one that lasts longer",
                metadata: ["expired": "\(certificate.expires.rfc3339)"]
            )
        } catch {
            logger.error("the server certificate could not be exchanged", metadata: ["error": "\(error)"])
        }
    }
}
