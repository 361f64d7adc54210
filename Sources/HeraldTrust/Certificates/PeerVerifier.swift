import Crypto
import CryptoExtras
package import HeraldModel
import SwiftASN1
import X509

/// Tells who a peer is, from the certificate of its connection.
///
/// TLS has verified by then that the chain leads to the door's one trust root. It has not looked at the rest, and on a
/// resumed session it has looked at nothing at all: BoringSSL gives back the certificate of the first session, which
/// may have been revoked or have expired since. So this is asked after every handshake.
///
/// What a device's certificate says is remembered by its bytes; its dates and its revocation are judged each time.
package struct PeerVerifier: Sendable {
    /// How many devices' certificates are remembered: some 300 bytes each.
    package static let deviceCacheCapacity = 4096

    /// What counts for a provider certificate that has neither of Apple's marks for the environments.
    ///
    /// Apple does not say; nothing is the cautious answer.
    package let unmarkedEnvironments: Set<PushEnvironment>
    private let providers: CertificateAuthority
    private let devices: CertificateAuthority
    private let revocations: RevocationBook
    private let knownDevices = KnownDevices(capacity: deviceCacheCapacity)

    package init(
        providers: CertificateAuthority,
        devices: CertificateAuthority,
        revocations: RevocationBook,
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) {
        self.providers = providers
        self.devices = devices
        self.revocations = revocations
        self.unmarkedEnvironments = unmarkedEnvironments
    }

    /// Who a provider is, by the certificate (DER) that it showed in this session, or in the one that it resumes.
    package func provider(
        certificate der: [UInt8],
        at now: WallTime
    ) -> Result<ProviderCertificateIdentity, PeerRefusal> {
        Result { () throws(PeerRefusal) in
            try providerIdentity(try leaf(der, kind: .provider, authority: providers, now: now))
        }
    }

    /// Who a device is, by the certificate (DER) that it showed in this session, or in the one that it resumes.
    package func device(certificate der: [UInt8], at now: WallTime) -> Result<DeviceIdentity, PeerRefusal> {
        Result { () throws(PeerRefusal) in
            let digest = KnownDevices.Digest(der)
            if let known = knownDevices.device(digest) {
                try checkDates(known.begins, known.identity.expires, now: now)
                try checkRevocation(known.serialNumber, of: .device, now: now)
                return known.identity
            }
            let certificate = try leaf(der, kind: .device, authority: devices, now: now)
            let identity = try deviceIdentity(certificate)
            let device = KnownDevices.Device(
                identity: identity,
                begins: WallTime(certificate.notValidBefore),
                // A copy: the number as it was read keeps the whole certificate.
                serialNumber: Certificate.SerialNumber(bytes: Array(certificate.serialNumber.bytes))
            )
            knownDevices.remember(device, as: digest)
            return identity
        }
    }

    /// What is wrong with a certificate (DER) that TLS did not take: the first fault that shows, for people.
    ///
    /// Nothing is verified by this and nothing remembered. One without such a fault is not signed by the authority whose
    /// name it bears.
    package func fault(of kind: PeerKind, certificate der: [UInt8], at now: WallTime) -> PeerRefusal {
        do throws(PeerRefusal) {
            _ = try leaf(der, kind: kind, authority: kind == .device ? devices : providers, now: now)
            return PeerRefusal(.wrongAuthority, "the certificate is not signed by the authority that it names")
        } catch {
            return error
        }
    }

    private func leaf(
        _ der: [UInt8],
        kind: PeerKind,
        authority: CertificateAuthority,
        now: WallTime
    ) throws(PeerRefusal) -> Certificate {
        guard let certificate = try? Certificate(derEncoded: der), certificate.version == .v3 else {
            throw PeerRefusal(.malformed, "the certificate cannot be read")
        }
        try checkIssuer(certificate, authority)
        try checkDates(WallTime(certificate.notValidBefore), WallTime(certificate.notValidAfter), now: now)
        try checkPurpose(certificate)
        try checkKey(certificate)
        try checkRevocation(certificate.serialNumber, of: kind, now: now)
        return certificate
    }

    private func checkRevocation(
        _ serialNumber: Certificate.SerialNumber,
        of kind: PeerKind,
        now: WallTime
    ) throws(PeerRefusal) {
        switch revocations.status(serialNumber, of: kind, now: now) {
        case .good: break
        case .revoked: throw PeerRefusal(.revoked, "the certificate is revoked")
        case .unknown: throw PeerRefusal(.revocationUnknown, "there is no current list of revoked certificates")
        }
    }

    /// The issuer's name alone is not enough: anybody may call an authority by it (RFC 5280 §4.2.1.1).
    private func checkIssuer(_ certificate: Certificate, _ authority: CertificateAuthority) throws(PeerRefusal) {
        guard certificate.issuer == authority.certificate.subject else {
            throw PeerRefusal(.wrongAuthority, "the certificate is of another authority")
        }
        guard let identifier = try? certificate.extensions.authorityKeyIdentifier else {
            // Absent, which is seen in certificates made by hand; TLS has checked the signature itself.
            guard certificate.extensions[oid: .X509ExtensionID.authorityKeyIdentifier] == nil else {
                throw PeerRefusal(.malformed, "the certificate's authority key identifier cannot be read")
            }
            return
        }
        if let named = identifier.keyIdentifier, let expected = authority.keyIdentifier, named != expected {
            throw PeerRefusal(.wrongAuthority, "the certificate is of another authority of the same name")
        }
    }

    private func checkDates(_ begins: WallTime, _ ends: WallTime, now: WallTime) throws(PeerRefusal) {
        guard begins <= now else {
            throw PeerRefusal(.notYetValid, "the certificate is not valid yet")
        }
        guard now <= ends else {
            throw PeerRefusal(.expired, "the certificate has expired")
        }
    }

    private func checkPurpose(_ certificate: Certificate) throws(PeerRefusal) {
        let extensions = certificate.extensions
        do {
            if case .isCertificateAuthority = try extensions.basicConstraints {
                throw PeerRefusal(.isAuthority, "the certificate is an authority's own")
            }
            if let usage = try extensions.keyUsage, !usage.digitalSignature || usage.keyCertSign {
                throw PeerRefusal(.wrongPurpose, "the certificate's key is not for signing handshakes")
            }
            // The catch-all usage does not count: it is found on authorities' and test certificates.
            guard try extensions.extendedKeyUsage?.contains(.clientAuth) == true else {
                throw PeerRefusal(.wrongPurpose, "the certificate is not for TLS clients")
            }
        } catch let refusal as PeerRefusal {
            throw refusal
        } catch {
            throw PeerRefusal(.malformed, "the certificate's usage cannot be read")
        }
    }

    private func checkKey(_ certificate: Certificate) throws(PeerRefusal) {
        guard PeerVerifier.isStrong(certificate.publicKey) else {
            throw PeerRefusal(.weakKey, "the certificate's key is weaker than P-256 and than RSA of 2048 bits")
        }
    }

    /// Whether a key is P-256 or better, or RSA of 2048 bits or more.
    ///
    /// Of curves the library knows no weaker one.
    static func isStrong(_ key: Certificate.PublicKey) -> Bool {
        guard let rsa = _RSA.Signing.PublicKey(key) else { return true }
        return rsa.keySizeInBits >= 2048
    }

    private func deviceIdentity(_ certificate: Certificate) throws(PeerRefusal) -> DeviceIdentity {
        guard let names = try? certificate.extensions.subjectAlternativeNames, names.count == 1,
            case .uniformResourceIdentifier(let uri)? = names.first, uri.hasPrefix(DeviceID.urnPrefix),
            let id = DeviceID(uri.dropFirst(DeviceID.urnPrefix.count))
        else {
            throw PeerRefusal(
                .noIdentity,
                "the certificate does not have one name of the form \(DeviceID.urnPrefix)<id>"
            )
        }
        return DeviceIdentity(
            id: id,
            serial: SerialText.text(certificate.serialNumber),
            expires: WallTime(certificate.notValidAfter)
        )
    }

    private func providerIdentity(_ certificate: Certificate) throws(PeerRefusal) -> ProviderCertificateIdentity {
        let userID = try PeerVerifier.onlyValue(AppleExtensions.userID, of: certificate.subject)
        let unit = try PeerVerifier.onlyValue(.RDNAttributeType.organizationalUnitName, of: certificate.subject)
        var listed: Set<Topic>?
        for oid in [AppleExtensions.topics, AppleExtensions.voipTopics] {
            guard let found = certificate.extensions[oid: oid] else { continue }
            guard let topics = AppleExtensions.topicList(found.value) else {
                throw PeerRefusal(.noIdentity, "the certificate's list of topics cannot be read")
            }
            listed = (listed ?? []).union(topics)
        }
        let subjectTopic = userID.flatMap { Topic($0) }
        let topics = listed ?? Set([subjectTopic].compactMap { $0 })
        guard !topics.isEmpty else {
            throw PeerRefusal(.noIdentity, "the certificate names no topic")
        }
        return ProviderCertificateIdentity(
            serial: SerialText.text(certificate.serialNumber),
            team: unit,
            topics: topics,
            defaultTopic: topics.count == 1 ? topics.first : nil,
            subjectTopic: subjectTopic.flatMap { topics.contains($0) ? $0 : nil },
            environments: environments(certificate),
            expires: WallTime(certificate.notValidAfter)
        )
    }

    private func environments(_ certificate: Certificate) -> Set<PushEnvironment> {
        var marked: Set<PushEnvironment> = []
        if certificate.extensions[oid: AppleExtensions.sandbox] != nil { marked.insert(.sandbox) }
        if certificate.extensions[oid: AppleExtensions.production] != nil { marked.insert(.production) }
        return marked.isEmpty ? unmarkedEnvironments : marked
    }

    /// The value of an attribute that a subject has once, or not at all.
    private static func onlyValue(
        _ type: ASN1ObjectIdentifier,
        of name: DistinguishedName
    ) throws(PeerRefusal) -> String? {
        let values = name.flatMap { $0.filter { $0.type == type } }
        guard values.count <= 1 else {
            throw PeerRefusal(.noIdentity, "the certificate's subject names two teams or two topics")
        }
        guard let value = values.first else { return nil }
        guard let text = String(value.value) else {
            throw PeerRefusal(.noIdentity, "the certificate's subject cannot be read")
        }
        return text
    }
}
