import Crypto
import Foundation
package import HeraldIdentity
package import HeraldModel
import X509

/// An announcement with its signed text.
package struct SignedAnnouncement: Hashable, Sendable {
    package let text: String
    package let content: Announcement
}

/// Signs what devices have to know of the service: the authorities in `ca.pem`, and the configured addresses.
///
/// The key, `trust/announcement.key`, is apart from that of the server's certificate: who steals that one can show it to
/// devices, but cannot tell them whom to trust next. The operator may keep the key elsewhere, and put it back for a change.
package struct AnnouncementIssuer: Sendable {
    let folder: TrustFolder

    private var layout: TrustLayout { folder.layout }

    static func makeKey(_ layout: TrustLayout) throws {
        guard !TrustFile.exists(layout.announcementKey) else { return }
        let pem = P256.Signing.PrivateKey().pemRepresentation + "\n"
        try TrustFile.write(Array(pem.utf8), to: layout.announcementKey, .secret)
    }

    /// The newest announcement; nil before the first.
    /// - Throws: ``TrustError``.
    package func newest() throws -> SignedAnnouncement? {
        guard TrustFile.exists(layout.announcement) else { return nil }
        let text = String(decoding: try TrustFile.read(layout.announcement, .secret), as: UTF8.self)
            .trimmingCharacters(in: .newlines)
        do {
            return SignedAnnouncement(text: text, content: try Announcement(text, signedBy: nil))
        } catch {
            throw TrustError(.damaged, "\(layout.announcement): \(error.rawValue): remove it, and restart the service")
        }
    }

    /// Signs the next announcement if authorities or addresses have changed, or there is none.
    ///
    /// Called under the lock. Without `addresses`, those of the newest announcement are announced. `anew` signs in any
    /// case: devices may know a newer one than this folder.
    /// - Throws: ``TrustError``, if the key is not there or the announcement is too long.
    func update(addresses: [ServiceEndpoint]?, anew: Bool = false, now: WallTime) throws {
        let former = try newest()?.content
        let next = Announcement(
            version: max(now.milliseconds, (former?.version ?? 0) + 1),
            addresses: addresses ?? former?.addresses ?? [],
            authorities: try folder.publicAuthorities(),
            after: former
        )
        guard anew || former?.addresses != next.addresses || former?.authorities != next.authorities else { return }
        guard try folder.serverCertificate().authority(among: next.authorities) != nil else {
            throw TrustError(
                .invalidArgument,
                "devices are not told of \(layout.authority), since no certificate in it signed that in \(layout.server): they "
                    + "would refuse the service. Add the authority that did"
            )
        }
        let text: String
        do {
            text = try next.signed(with: try key())
        } catch let error as TrustError {
            throw error
        } catch {
            throw TrustError(.unexpected, "the announcement cannot be signed")
        }
        guard text.utf8.count <= Announcement.maximumBytes else {
            throw TrustError(
                .invalidArgument,
                "\(layout.authority) has too many certificates to announce them to devices: keep those that sign the "
                    + "server's certificate, now or next"
            )
        }
        try TrustFile.write(Array((text + "\n").utf8), to: layout.announcement, .secret)
    }

    /// Signs the next announcement if `ca.pem` has changed.
    package func followAuthorities(now: WallTime) async throws {
        try await TrustLock.with(layout) { try update(addresses: nil, now: now) }
    }

    /// Signs the same authorities and addresses again, as newer than all that devices have.
    package func renew(now: WallTime) async throws {
        try await TrustLock.with(layout) { try update(addresses: nil, anew: true, now: now) }
    }

    /// The key, which a start reads to find damage early.
    func key() throws -> P256.Signing.PrivateKey {
        guard TrustFile.exists(layout.announcementKey) else {
            throw TrustError(
                .noSigningKey,
                "devices are not told of the change: \(layout.announcementKey) is not there. Put it back, and restart the "
                    + "service"
            )
        }
        return try AnnouncementIssuer.key(in: layout)
    }

    /// The key of a folder that has one.
    /// - Throws: ``TrustError`` if it cannot be read.
    static func key(in layout: TrustLayout) throws -> P256.Signing.PrivateKey {
        let pem = String(decoding: try TrustFile.read(layout.announcementKey, .secret), as: UTF8.self)
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw TrustError(.damaged, "\(layout.announcementKey) is not a private key: \(TrustError.copyFromBackup)")
        }
        return key
    }
}
