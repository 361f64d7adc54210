import HeraldIdentity
package import HeraldModel
import SwiftASN1
import X509

/// Enters certificates of the folder's authorities in a ledger that lacks them: they were issued after a restored backup.
///
/// Herald accepts such a certificate, since its authority signed it. Only what is in the ledger can be revoked.
package struct LedgerEntry: Sendable {
    private let folder: TrustFolder

    package init(_ folder: TrustFolder) {
        self.folder = folder
    }

    /// Enters the first certificate of a PEM text, unless it is there; what follows it (chain, key) is ignored.
    /// - Returns: The credential's identifier.
    /// - Throws: ``TrustError/Code/badRequest`` for a certificate that Herald would not accept, or a problem of the
    ///   folder.
    package func provider(_ pem: [UInt8], now: WallTime) async throws -> String {
        let certificate = try read(pem, signedBy: folder.providerAuthority)
        let begins = WallTime(certificate.notValidBefore)
        let identity = try accepted(peers.provider(certificate: PEMBundle.der(certificate), at: max(now, begins)))
        if let known = try await known(serial: identity.serial) { return known }
        while true {
            let credential = Credential(
                id: try await folder.providers.newID(),
                kind: .certificate,
                serial: identity.serial,
                team: identity.team,
                topics: identity.topics.sorted { $0.name < $1.name },
                environments: identity.environments,
                created: begins,
                expires: identity.expires
            )
            if try await folder.store.add(credential) { return credential.id }
        }
    }

    /// Enters the device of the first certificate of a PEM text, unless it is there; what follows it (chain, key) is
    /// ignored.
    ///
    /// The revocation of a device ends each certificate with its identifier, also one that the ledger lacks.
    /// - Returns: The device's identifier.
    /// - Throws: ``TrustError/Code/badRequest`` for a certificate that Herald would not accept, or a problem of the
    ///   folder.
    package func device(_ pem: [UInt8], now: WallTime) async throws -> DeviceID {
        let certificate = try read(pem, signedBy: folder.deviceAuthority)
        let begins = WallTime(certificate.notValidBefore)
        let identity = try accepted(peers.device(certificate: PEMBundle.der(certificate), at: max(now, begins)))
        let device = EnrolledDevice(
            id: identity.id,
            name: nil,
            certificate: .init(serial: identity.serial, expires: identity.expires),
            created: begins
        )
        // False: it is there.
        _ = try await folder.store.add(device, invitation: nil)
        return identity.id
    }

    /// Checks a certificate but for its revocation, which the ledger decides here.
    private var peers: PeerCertificateCheck {
        PeerCertificateCheck(
            providers: folder.providerAuthority,
            devices: folder.deviceAuthority,
            revocations: RevocationLists(sources: [:], policy: RevocationPolicy(mayBeMissing: true)),
            unmarkedEnvironments: Set(PushEnvironment.allCases)
        )
    }

    private func read(_ pem: [UInt8], signedBy authority: CertificateAuthority) throws -> Certificate {
        let der: [UInt8]?
        do {
            der = try PEMFile(pem).certificates().first
        } catch {
            throw LedgerEntry.unusable("\(error)")
        }
        guard let der, let certificate = try? Certificate(derEncoded: der) else {
            throw LedgerEntry.unusable("it cannot be read")
        }
        guard authority.certificate.publicKey.isValidSignature(certificate.signature, for: certificate) else {
            throw LedgerEntry.unusable("\(authority.certificate.subject) has not signed it: Herald refuses it anyway")
        }
        return certificate
    }

    private func accepted<Identity>(_ result: Result<Identity, PeerRefusal>) throws -> Identity {
        switch result {
        case .success(let identity): return identity
        case .failure(let refusal): throw LedgerEntry.unusable("\(refusal.message), so Herald refuses it anyway")
        }
    }

    private func known(serial: String) async throws -> String? {
        var last: String?
        while true {
            let page = try await folder.store.certificates(after: last, limit: 1000)
            if let known = page.first(where: { $0.serial == serial }) { return known.id }
            guard let next = page.last?.id else { return nil }
            last = next
        }
    }

    private static func unusable(_ fault: String) -> TrustError {
        TrustError(.badRequest, "the certificate cannot be entered in the ledger: \(fault)")
    }
}
