import CryptoExtras
package import HeraldModel
import SwiftASN1
import X509

/// Checks a peer's certificate after every TLS handshake, resumed sessions included, and reads its identity.
///
/// TLS has verified that the chain leads to the listener's only trust root, and nothing else. On a resumed session it
/// verifies nothing: BoringSSL returns the certificate of the first session, which may have expired or been revoked since.
/// So this check covers issuer, dates, usage, key strength, revocation (``RevocationLists``) and identity.
///
/// The identity of a device's certificate is cached by its bytes. Dates and revocation are checked each time.
package struct PeerCertificateCheck: Sendable {
    /// The most cached device certificates: some 300 bytes each.
    package static let deviceCacheCapacity = 4096

    /// The environments of a provider certificate without Apple's extensions for them.
    ///
    /// Apple does not document this case. The default is none.
    package let unmarkedEnvironments: Set<PushEnvironment>
    private let providers: CertificateAuthority
    private let devices: CertificateAuthority
    private let revocations: RevocationLists
    private let cache = DeviceCertificateCache(capacity: deviceCacheCapacity)

    package init(
        providers: CertificateAuthority,
        devices: CertificateAuthority,
        revocations: RevocationLists,
        unmarkedEnvironments: Set<PushEnvironment> = []
    ) {
        self.providers = providers
        self.devices = devices
        self.revocations = revocations
        self.unmarkedEnvironments = unmarkedEnvironments
    }

    /// Checks the certificate (DER) of a provider, from this session or the resumed one.
    package func provider(
        certificate der: [UInt8],
        at now: WallTime
    ) -> Result<ProviderCertificateIdentity, PeerRefusal> {
        Result { () throws(PeerRefusal) in
            try providerIdentity(try leaf(der, kind: .provider, authority: providers, now: now))
        }
    }

    /// Checks the certificate (DER) of a device, from this session or the resumed one.
    package func device(certificate der: [UInt8], at now: WallTime) -> Result<DeviceIdentity, PeerRefusal> {
        Result { () throws(PeerRefusal) in
            let digest = DeviceCertificateCache.Digest(der)
            if let known = cache.device(digest) {
                try checkDates(known.begins, known.identity.expires, now: now)
                try revocations.check(known.serialNumber, of: .device, now: now)
                try revocations.check(known.identity.id)
                return known.identity
            }
            let certificate = try leaf(der, kind: .device, authority: devices, now: now)
            let identity = try deviceIdentity(certificate)
            try revocations.check(identity.id)
            let device = DeviceCertificateCache.Device(
                identity: identity,
                begins: WallTime(certificate.notValidBefore),
                // A copy, because the parsed number keeps the whole certificate in memory.
                serialNumber: Certificate.SerialNumber(bytes: Array(certificate.serialNumber.bytes))
            )
            cache.insert(device, as: digest)
            return identity
        }
    }

    /// The first problem of a certificate (DER) that TLS refused, for the log.
    ///
    /// This verifies no signature. A certificate without another problem is not signed by the authority that it names.
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
        try revocations.check(certificate.serialNumber, of: kind, now: now)
        return certificate
    }

    /// Checks the issuer's name and key identifier, because anyone can use the name (RFC 5280 §4.2.1.1).
    private func checkIssuer(_ certificate: Certificate, _ authority: CertificateAuthority) throws(PeerRefusal) {
        guard certificate.issuer == authority.certificate.subject else {
            throw PeerRefusal(.wrongAuthority, "another authority issued the certificate")
        }
        guard let identifier = try? certificate.extensions.authorityKeyIdentifier else {
            // Hand-made certificates may lack it; TLS has checked the signature itself.
            guard certificate.extensions[oid: .X509ExtensionID.authorityKeyIdentifier] == nil else {
                throw PeerRefusal(.malformed, "the certificate's authority key identifier cannot be read")
            }
            return
        }
        if let named = identifier.keyIdentifier, let expected = authority.keyIdentifier, named != expected {
            throw PeerRefusal(.wrongAuthority, "another authority of the same name issued the certificate")
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
                throw PeerRefusal(.isAuthority, "the certificate is that of an authority")
            }
            if let usage = try extensions.keyUsage, !usage.digitalSignature || usage.keyCertSign {
                throw PeerRefusal(.wrongPurpose, "the certificate's key usage does not allow TLS handshakes")
            }
            // The usage "any" does not count, because authorities' and test certificates have it.
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
        guard PeerCertificateCheck.isStrong(certificate.publicKey) else {
            throw PeerRefusal(.weakKey, "the certificate's key is weaker than P-256 or RSA of 2048 bits")
        }
    }

    /// Whether a key is RSA of 2048 bits or more, or on a curve: the library supports none weaker than P-256.
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
            serial: SerialNumberText.text(certificate.serialNumber),
            expires: WallTime(certificate.notValidAfter)
        )
    }

    private func providerIdentity(_ certificate: Certificate) throws(PeerRefusal) -> ProviderCertificateIdentity {
        let userID = try PeerCertificateCheck.onlyValue(AppleExtensions.userID, of: certificate.subject)
        let unit = try PeerCertificateCheck.onlyValue(.RDNAttributeType.organizationalUnitName, of: certificate.subject)
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
            serial: SerialNumberText.text(certificate.serialNumber),
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

    /// The value of an attribute that a subject may have once.
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
