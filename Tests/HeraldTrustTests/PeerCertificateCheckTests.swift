import Crypto
import CryptoExtras
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

struct PeerCertificateCheckTests {
    private let trust: TestTrust
    private let service: TrustService

    init() async throws {
        trust = try await TestTrust()
        service = try await trust.service()
    }

    private func device(_ certificate: TestCertificate) throws -> PeerRefusal.Code? {
        let der = try certificate.der(trust, .device)
        return refusal(service.peers.device(certificate: der, at: trust.now))
    }

    private func provider(_ certificate: TestCertificate) throws -> PeerRefusal.Code? {
        let der = try certificate.der(trust, .provider)
        return refusal(service.peers.provider(certificate: der, at: trust.now))
    }

    private func refusal<Identity>(_ result: Result<Identity, PeerRefusal>) -> PeerRefusal.Code? {
        switch result {
        case .success: nil
        case .failure(let refusal): refusal.code
        }
    }

    // Invalid certificates of either kind, and the expected refusals.
    private static let oddities: [(String, PeerRefusal.Code, @Sendable (inout TestCertificate) throws -> Void)] = [
        ("expired", .expired, { $0.ends = .seconds(-1) }),
        ("not valid yet", .notYetValid, { $0.begins = .seconds(60) }),
        ("no extended key usage", .wrongPurpose, { $0.usages = nil }),
        ("for servers", .wrongPurpose, { $0.usages = [.serverAuth] }),
        ("for signing code and mail", .wrongPurpose, { $0.usages = [.codeSigning, .emailProtection] }),
        ("for anything", .wrongPurpose, { $0.usages = [.any] }),
        ("an authority", .isAuthority, { $0.constraints = .isCertificateAuthority(maxPathLength: nil) }),
        ("an authority of no depth", .isAuthority, { $0.constraints = .isCertificateAuthority(maxPathLength: 0) }),
        (
            "a key that signs certificates", .wrongPurpose,
            {
                $0.keyUsage = KeyUsage(digitalSignature: true, keyCertSign: true)
            }
        ),
        ("a key that only agrees", .wrongPurpose, { $0.keyUsage = KeyUsage(keyAgreement: true) }),
        (
            "another key's authority", .wrongAuthority,
            { $0.authorityKeyIdentifier = .some(Array(repeating: 1, count: 20)) }
        ),
        // The library refuses such a key itself; if it accepted one, `weakKey` would apply.
        (
            "RSA of 1024 bits", .malformed,
            {
                $0.key = Certificate.PrivateKey(try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1024)))
            }
        ),
        (
            "an unreadable key usage", .malformed,
            {
                $0.keyUsage = nil
                $0.extensions.append(.init(oid: [2, 5, 29, 15], critical: true, value: [0x04, 0x00]))
            }
        ),
        (
            "an unreadable extended key usage", .malformed,
            {
                $0.usages = nil
                $0.extensions.append(.init(oid: [2, 5, 29, 37], critical: false, value: [0x05, 0x00]))
            }
        ),
        (
            "unreadable constraints", .malformed,
            {
                $0.constraints = nil
                $0.extensions.append(.init(oid: [2, 5, 29, 19], critical: true, value: [0x02, 0x01, 0x00]))
            }
        ),
        (
            "an unreadable authority key identifier", .malformed,
            {
                $0.authorityKeyIdentifier = .some(nil)
                $0.extensions.append(.init(oid: [2, 5, 29, 35], critical: false, value: [0x02, 0x01, 0x00]))
            }
        ),
    ]

    @Test(arguments: oddities.indices)
    func `an invalid certificate is refused at both listeners`(index: Int) throws {
        let (name, code, spoil) = Self.oddities[index]
        var device = TestCertificate.device("d1")
        try spoil(&device)
        #expect(try self.device(device) == code, "a device's: \(name)")
        var provider = TestCertificate.provider("com.example.chat")
        try spoil(&provider)
        #expect(try self.provider(provider) == code, "a provider's: \(name)")
    }

    @Test func `a certificate that TLS refused is diagnosed, and not cached`() throws {
        var expired = TestCertificate.device("d1")
        expired.ends = .seconds(-1)
        let fault = service.peers.fault(of: .device, certificate: try expired.der(trust, .device), at: trust.now)
        #expect(fault.code == .expired)
        // Only its signature is wrong, which TLS alone checks.
        let forged = try TestCertificate.device("d1").der(trust, .device)
        #expect(service.peers.fault(of: .device, certificate: forged, at: trust.now).code == .wrongAuthority)
        #expect(service.peers.fault(of: .device, certificate: [1, 2, 3], at: trust.now).code == .malformed)
        let foreign = try TestCertificate.provider("com.example.chat").der(trust, .provider)
        #expect(service.peers.fault(of: .device, certificate: foreign, at: trust.now).code == .wrongAuthority)
    }

    @Test func `a valid certificate is accepted, also without its optional parts`() throws {
        #expect(try device(.device("d1")) == nil)
        #expect(try provider(.provider("com.example.chat")) == nil)
        var bare = TestCertificate.device("d1")
        bare.constraints = nil
        bare.keyUsage = nil
        bare.authorityKeyIdentifier = .some(nil)
        bare.usages = [.serverAuth, .clientAuth]
        #expect(try device(bare) == nil)
    }

    @Test(arguments: [2048, 3072])
    func `RSA keys of 2048 bits and more are accepted`(bits: Int) throws {
        var certificate = TestCertificate.device("d1")
        certificate.key = Certificate.PrivateKey(try _RSA.Signing.PrivateKey(keySize: .init(bitCount: bits)))
        #expect(try device(certificate) == nil)
    }

    @Test func `larger curves are accepted`() throws {
        for key in [
            Certificate.PrivateKey(P384.Signing.PrivateKey()), Certificate.PrivateKey(P521.Signing.PrivateKey()),
        ] {
            var certificate = TestCertificate.device("d1")
            certificate.key = key
            #expect(try device(certificate) == nil)
        }
    }

    @Test func `a certificate of the other listener's authority is refused`() throws {
        let device = try TestCertificate.device("d1").der(trust, .provider)
        #expect(refusal(service.peers.device(certificate: device, at: trust.now)) == .wrongAuthority)
        let provider = try TestCertificate.provider("com.example.chat").der(trust, .device)
        #expect(refusal(service.peers.provider(certificate: provider, at: trust.now)) == .wrongAuthority)
    }

    @Test func `a certificate of another service's authority is refused`() async throws {
        let other = try await TestTrust()
        let device = try TestCertificate.device("d1").der(other, .device)
        #expect(refusal(service.peers.device(certificate: device, at: trust.now)) == .wrongAuthority)
    }

    @Test func `the certificates of the authority and of the server are refused`() throws {
        let authority = trust.folder.deviceAuthority.der
        #expect(refusal(service.peers.device(certificate: authority, at: trust.now)) == .isAuthority)
        let server = try trust.folder.serverCertificate().chain[0]
        #expect(refusal(service.peers.device(certificate: server, at: trust.now)) == .wrongAuthority)
        #expect(refusal(service.peers.provider(certificate: server, at: trust.now)) == .wrongAuthority)
    }

    @Test func `malformed certificates are refused`() throws {
        let good = try TestCertificate.device("d1").der(trust, .device)
        for bytes in [[], [0x30], [0x30, 0x80, 0, 0], [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], Array("-----BEGIN".utf8)] {
            #expect(refusal(service.peers.device(certificate: bytes, at: trust.now)) == .malformed)
        }
        for length in 0..<good.count {
            #expect(refusal(service.peers.device(certificate: Array(good[..<length]), at: trust.now)) == .malformed)
        }
        #expect(refusal(service.peers.device(certificate: good + [0], at: trust.now)) == .malformed)
    }

    @Test func `a certificate with any byte changed causes no crash`() throws {
        // TLS has checked the signature; this tests only that parsing stays within bounds.
        var provider = TestCertificate.provider("com.example.chat", team: "TEAM000001")
        let topics: [UInt8] = [0x30, 0x0C, 0x0C, 0x05] + Array("com.a".utf8) + [0x30, 0x03, 0x0C, 0x01, 0x61]
        provider.extensions.append(.init(oid: [1, 2, 840, 113635, 100, 6, 3, 6], critical: false, value: topics[...]))
        let certificates = [try provider.der(trust, .provider), try TestCertificate.device("d1").der(trust, .device)]
        for certificate in certificates {
            for index in certificate.indices {
                for change in [0x01, 0x80, 0xFF] as [UInt8] {
                    var changed = certificate
                    changed[index] ^= change
                    _ = service.peers.provider(certificate: changed, at: trust.now)
                    _ = service.peers.device(certificate: changed, at: trust.now)
                }
            }
        }
    }

    // Invalid names of a device's certificate.
    @Test(
        arguments: [
            ("no name", []),
            (
                "two names",
                [
                    .uniformResourceIdentifier("urn:herald:device:d1"),
                    .uniformResourceIdentifier("urn:herald:device:d2"),
                ]
            ),
            (
                "one name twice",
                [
                    .uniformResourceIdentifier("urn:herald:device:d1"),
                    .uniformResourceIdentifier("urn:herald:device:d1"),
                ]
            ),
            ("a host name too", [.uniformResourceIdentifier("urn:herald:device:d1"), .dnsName("d1")]),
            ("a host name", [.dnsName("urn:herald:device:d1")]),
            ("a mail address", [.rfc822Name("d1@example.com")]),
            ("an address", [.ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1]))]),
            ("another scheme", [.uniformResourceIdentifier("https://example.com/d1")]),
            ("another urn", [.uniformResourceIdentifier("urn:herald:provider:d1")]),
            ("capitals", [.uniformResourceIdentifier("URN:HERALD:DEVICE:d1")]),
            ("no identifier", [.uniformResourceIdentifier("urn:herald:device:")]),
            ("a wildcard", [.uniformResourceIdentifier("urn:herald:device:*")]),
            ("a slash", [.uniformResourceIdentifier("urn:herald:device:a/b")]),
            ("a plus", [.uniformResourceIdentifier("urn:herald:device:+")]),
            ("a zero byte", [.uniformResourceIdentifier("urn:herald:device:d1\0d2")]),
            ("a space", [.uniformResourceIdentifier("urn:herald:device:d1 ")]),
            ("65 characters", [.uniformResourceIdentifier("urn:herald:device:" + String(repeating: "d", count: 65))]),
            ("a directory name", [.directoryName(DistinguishedName())]),
        ] as [(String, [GeneralName])]
    )
    func `a device's certificate has exactly one well-formed URI`(name: String, names: [GeneralName]) throws {
        var certificate = TestCertificate()
        certificate.subject = [.init(type: .RDNAttributeType.commonName, utf8String: "d1")]
        certificate.names = names
        #expect(try device(certificate) == .noIdentity, "\(name)")
    }

    @Test(arguments: [
        ("a letter that looks like another", Array("urn:herald:device:d\u{430}1".utf8)),
        ("bytes that are not text", Array("urn:herald:device:".utf8) + [0xFF, 0xFE]),
    ])
    func `a name that is not ASCII is refused`(name: String, uri: [UInt8]) throws {
        var certificate = TestCertificate()
        let value = [0x30, UInt8(uri.count + 2), 0x86, UInt8(uri.count)] + uri
        certificate.extensions = [.init(oid: [2, 5, 29, 17], critical: false, value: value[...])]
        #expect(try device(certificate) == .noIdentity, "\(name)")
    }

    @Test func `a device's identity has identifier, serial number and expiry`() async throws {
        let issued = try await trust.device("kitchen-1")
        let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
        let identity = try service.peers.device(certificate: PEMBundle.der(certificate), at: trust.now).get()
        #expect(identity.id == DeviceID("kitchen-1"))
        #expect(identity.serial == issued.device.serial)
        #expect(identity.expires == issued.device.expires)
    }

    @Test func `the only topic of a provider certificate is its default`() async throws {
        let issued = try await trust.provider("com.example.chat", team: "TEAM000001", environments: [.sandbox])
        let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
        let identity = try service.peers.provider(certificate: PEMBundle.der(certificate), at: trust.now).get()
        #expect(identity.topics == [try #require(Topic("com.example.chat"))])
        #expect(identity.defaultTopic == Topic("com.example.chat"))
        #expect(identity.team == "TEAM000001")
        #expect(identity.environments == [.sandbox])
        #expect(identity.serial == issued.credential.serial)
    }

    @Test func `a provider certificate of several topics has no default`() async throws {
        let issued = try await trust.provider(
            "com.example.chat",
            "com.example.chat.voip",
            "com.example.chat.complication"
        )
        let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
        let identity = try service.peers.provider(certificate: PEMBundle.der(certificate), at: trust.now).get()
        #expect(identity.topics.count == 3)
        #expect(identity.defaultTopic == nil)
        #expect(identity.team == nil)
        #expect(identity.environments == [.production, .sandbox])
    }

    @Test func `topics are parsed as in Apple's certificates`() throws {
        // Apple's form of the list: a sequence of labels follows each topic.
        func text(_ string: String) -> [UInt8] { [0x0C, UInt8(string.utf8.count)] + Array(string.utf8) }
        func sequence(_ content: [UInt8]) -> [UInt8] { [0x30, UInt8(content.count)] + content }
        let list = sequence(
            text("com.example.chat") + sequence(text("app")) + text("com.example.chat.voip") + sequence(text("voip"))
        )
        var certificate = TestCertificate.provider("com.example.chat")
        certificate.extensions.append(.init(oid: [1, 2, 840, 113635, 100, 6, 3, 6], critical: false, value: list[...]))
        let voip = sequence(text("com.example.calls.voip") + sequence([]))
        certificate.extensions.append(.init(oid: [1, 2, 840, 113635, 100, 6, 3, 4], critical: false, value: voip[...]))
        let der = try certificate.der(trust, .provider)
        let identity = try service.peers.provider(certificate: der, at: trust.now).get()
        #expect(
            Set(identity.topics.map(\.name))
                == ["com.example.chat", "com.example.chat.voip", "com.example.calls.voip"]
        )
    }

    @Test(
        arguments: [
            ("not a sequence", [0x0C, 0x01, 0x61]), ("a number in it", [0x30, 0x03, 0x02, 0x01, 0x01]),
            ("no topic in it", [0x30, 0x00]), ("a wildcard", [0x30, 0x03, 0x0C, 0x01, 0x2A]),
            ("unfinished", [0x30, 0x05, 0x0C]),
            ("empty text", [0x30, 0x02, 0x0C, 0x00]), ("nothing", []),
        ] as [(String, ArraySlice<UInt8>)]
    )
    func `an invalid list of topics is refused`(name: String, value: ArraySlice<UInt8>) throws {
        var certificate = TestCertificate.provider("com.example.chat")
        certificate.extensions.append(.init(oid: [1, 2, 840, 113635, 100, 6, 3, 6], critical: false, value: value))
        #expect(try provider(certificate) == .noIdentity, "\(name)")
    }

    @Test func `a subject without a topic, with two, or with an invalid one is refused`() throws {
        let uid: ASN1ObjectIdentifier = [0, 9, 2342, 19_200_300, 100, 1, 1]
        for values in [[], ["com.example.a", "com.example.b"], ["*"], [""], ["com.example/a"]] {
            var certificate = TestCertificate.provider("com.example.chat")
            certificate.subject = values.map { .init(type: uid, utf8String: $0) }
            #expect(try provider(certificate) == .noIdentity, "\(values)")
        }
        var twoTeams = TestCertificate.provider("com.example.chat", team: "TEAM000001")
        twoTeams.subject.append(.init(type: .RDNAttributeType.organizationalUnitName, utf8String: "TEAM000002"))
        #expect(try provider(twoTeams) == .noIdentity)
    }

    @Test func `a certificate without environments has the configured ones`() async throws {
        var certificate = TestCertificate.provider("com.example.chat")
        certificate.extensions = []
        let der = try certificate.der(trust, .provider)
        #expect(try service.peers.provider(certificate: der, at: trust.now).get().environments == [])
        let lenient = try await trust.service(unmarkedEnvironments: [.production])
        #expect(try lenient.peers.provider(certificate: der, at: trust.now).get().environments == [.production])
    }

    @Test func `a certificate is refused from the second of its expiry`() async throws {
        let issued = try await trust.device()
        let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
        let der = PEMBundle.der(certificate)
        let end = issued.device.expires
        #expect(refusal(service.peers.device(certificate: der, at: end)) == nil)
        #expect(refusal(service.peers.device(certificate: der, at: end + .seconds(1))) == .expired)
        #expect(refusal(service.peers.device(certificate: der, at: trust.now - .seconds(3700))) == .notYetValid)
    }

    @Test func `a revoked device is refused with each certificate, also an unknown one`() async throws {
        let issued = try await trust.device()
        // It was renewed after the backup from which the ledger was restored.
        let der = try TestCertificate.device(issued.device.id.name).der(trust, .device)
        let identity = try service.peers.device(certificate: der, at: trust.now).get()
        try await trust.folder.devices.revoke(issued.device.id.name, now: trust.now)
        _ = await service.reload()
        #expect(refusal(service.peers.device(certificate: der, at: trust.now)) == .revoked)
        #expect(service.isRevoked(identity) && !service.isRevoked(serial: identity.serial, of: .device))
        let restarted = try await trust.service()
        #expect(refusal(restarted.peers.device(certificate: der, at: trust.now)) == .revoked)
        let other = try TestCertificate.device("another").der(trust, .device)
        #expect(refusal(restarted.peers.device(certificate: other, at: trust.now)) == nil)
    }

    @Test func `a revoked peer is refused once the list is loaded`() async throws {
        let issued = try await trust.device()
        let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
        let der = PEMBundle.der(certificate)
        try await trust.folder.devices.revoke(issued.device.id.name, now: trust.now)
        #expect(refusal(service.peers.device(certificate: der, at: trust.now)) == nil)
        #expect(await service.reload().revocations == [.device])
        #expect(refusal(service.peers.device(certificate: der, at: trust.now)) == .revoked)
        #expect(service.isRevoked(serial: issued.device.serial, of: .device))
        #expect(!service.isRevoked(serial: issued.device.serial, of: .provider))
        #expect(
            refusal(try await trust.service().peers.device(certificate: der, at: trust.now)) == .revoked,
            "after a restart"
        )
    }

    @Test func `a provider gets BadCertificate for a refused certificate`() throws {
        var certificate = TestCertificate.provider("com.example.chat")
        certificate.usages = nil
        let der = try certificate.der(trust, .provider)
        guard case .failure(let refusal) = service.peers.provider(certificate: der, at: trust.now) else {
            Issue.record("accepted")
            return
        }
        #expect(refusal.refusalReason == .badCertificate)
    }
}
