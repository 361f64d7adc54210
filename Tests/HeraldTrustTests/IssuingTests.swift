import Crypto
import CryptoExtras
import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

struct IssuingTests {
    private let trust: TestTrust

    init() throws {
        trust = try TestTrust()
    }

    private func kinds(_ pem: String) throws -> [String] {
        try PEMDocument.parseMultiple(pemString: pem).map(\.discriminator)
    }

    private func request(_ key: Certificate.PrivateKey, subject: String = "somebody") throws -> PEMDocument {
        let name = try DistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: subject)])
        return try CertificateSigningRequest(
            version: .v1,
            subject: name,
            privateKey: key,
            attributes: .init()
        ).serializeAsPEM()
    }

    @Test func `a PEM file holds the certificate, its chain, and the key, in that order`() throws {
        let pem = try trust.provider("com.example.chat").pem
        #expect(try kinds(pem) == ["CERTIFICATE", "CERTIFICATE", "PRIVATE KEY"])
        let bundle = try PEMBundle(pem: Array(pem.utf8), path: "pem")
        #expect(bundle.certificates[1] == trust.folder.providerAuthority.certificate)
        #expect(bundle.key?.publicKey == bundle.certificates[0].publicKey)
        #expect(pem.hasSuffix("-----END PRIVATE KEY-----\n"))
        #expect(try kinds(try trust.device().pem) == ["CERTIFICATE", "CERTIFICATE", "PRIVATE KEY"])
    }

    @Test func `where a request is signed, its key is taken, its names are not, and no key is handed out`() throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let document = try request(key, subject: "urn:herald:device:other")
        let encodings = [
            Array(document.pemString.utf8), document.derBytes,
            Array(document.pemString.replacing("CERTIFICATE REQUEST", with: "NEW CERTIFICATE REQUEST").utf8),
        ]
        for bytes in encodings {
            let issued = try trust.folder.enrollDevice(name: "Lamp", request: bytes, now: trust.now)
            #expect(try kinds(issued.pem) == ["CERTIFICATE", "CERTIFICATE"])
            let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
            #expect(certificate.publicKey == key.publicKey)
            let identity = try trust.office().peers.device(certificate: PEMBundle.der(certificate), at: trust.now).get()
            #expect(identity.id == issued.record.id)
        }
    }

    @Test func `a request that is none, is signed by another, or is for a weak key is refused`() throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        var forged = try request(key).derBytes
        forged[forged.count - 1] ^= 1
        let weak = Certificate.PrivateKey(try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1024)))
        let certificate = try trust.provider("com.example.chat").pem
        for bytes in [[], Array("garbage".utf8), forged, try request(weak).derBytes, Array(certificate.utf8)] {
            #expect(throws: TrustError(.badRequest, "")) {
                try trust.folder.enrollDevice(name: nil, request: bytes, now: trust.now)
            }
        }
        #expect(try trust.folder.enrolledDevices().isEmpty)
    }

    @Test func `a provider key's token is good for a running service after a reload`() throws {
        let office = try trust.office()
        let key = try trust.providerKey("com.example.chat")
        let token = Array(try key.token(issued: trust.now).utf8)
        guard case .refused(.invalidProviderToken, _) = office.providerTokens.verify(token, now: trust.now) else {
            Issue.record("accepted before it is known")
            return
        }
        #expect(office.reload().credentials)
        guard case .valid(let identity) = office.providerTokens.verify(token, now: trust.now) else {
            Issue.record("refused")
            return
        }
        #expect(office.providerTokens.mayPush(try #require(Topic("com.example.chat")), as: identity))
        try trust.folder.revokeCredential(key.id, now: trust.now)
        #expect(office.reload().credentials)
        guard case .refused(.invalidProviderToken, _) = office.providerTokens.verify(token, now: trust.now) else {
            Issue.record("accepted after its revocation")
            return
        }
    }

    @Test func `the file of a provider key is named as clients expect it and holds PKCS 8`() throws {
        let issued = try trust.folder.makeProviderKey(
            team: "TEAM000001",
            topics: [],
            environments: [.sandbox],
            now: trust.now
        )
        #expect(issued.fileName == "AuthKey_\(issued.credential.id).p8")
        #expect(ProviderKey.isIdentifier(issued.credential.id))
        #expect(try kinds(issued.pem) == ["PRIVATE KEY"])
        let stored = try String(contentsOfFile: trust.path + "/trust/provider-keys.json", encoding: .utf8)
        #expect(!stored.contains("PRIVATE"))
    }

    @Test func `a topic that another team's certificate names is barred for a key of the whole team`() throws {
        let topic = try #require(Topic("com.other.chat"))
        let office = try trust.office()
        _ = try trust.providerKey(team: "TEAM000001")
        let other = try trust.provider("com.other.chat", team: "TEAM000002").credential
        _ = office.reload()
        #expect(!office.providerTokens.book.mayPush(topic: topic, team: "TEAM000001"))
        try trust.folder.revokeCredential(other.id, now: trust.now)
        #expect(office.reload().credentials)
        #expect(office.providerTokens.book.mayPush(topic: topic, team: "TEAM000001"))
    }

    @Test func `enrolling a device is no reason to check provider tokens anew`() throws {
        let office = try trust.office()
        _ = try trust.device()
        #expect(office.reload().isUnchanged)
    }

    @Test func `what is asked for must make sense`() throws {
        let topic = try #require(Topic("com.example.chat"))
        let folder = trust.folder
        let now = trust.now
        let both: Set<PushEnvironment> = [.production, .sandbox]
        for team in ["", "TEAM", "team000001", "TEAM-00001", "TEAM0000011"] {
            #expect(throws: TrustError(.invalidArgument, "")) {
                try folder.makeProviderKey(team: team, topics: [], environments: both, now: now)
            }
            #expect(throws: TrustError(.invalidArgument, "")) {
                try folder.issueProviderCertificate(topics: [topic], team: team, environments: both, now: now)
            }
        }
        #expect(throws: TrustError(.invalidArgument, "")) {
            try folder.issueProviderCertificate(topics: [], team: nil, environments: both, now: now)
        }
        #expect(throws: TrustError(.invalidArgument, "")) {
            try folder.issueProviderCertificate(topics: [topic], team: nil, environments: [], now: now)
        }
        let many = (0...TrustFolder.maximumTopics).compactMap { Topic("com.example.a\($0)") }
        #expect(throws: TrustError(.invalidArgument, "")) {
            try folder.makeProviderKey(team: "TEAM000001", topics: many, environments: both, now: now)
        }
        for name in ["", "a\nb", "a\u{1B}[31m", String(repeating: "n", count: 201)] {
            #expect(throws: TrustError(.invalidArgument, "")) { try folder.enrollDevice(name: name, now: now) }
        }
        #expect(try folder.credentials().isEmpty)
        #expect(try folder.enrolledDevices().isEmpty)
    }

    @Test func `a device's identifier is used once, also after it was revoked`() throws {
        let id = try #require(DeviceID("kitchen-1"))
        _ = try trust.folder.enrollDevice(name: nil, id: id, now: trust.now)
        #expect(throws: TrustError(.invalidArgument, "")) {
            try trust.folder.enrollDevice(name: nil, id: id, now: trust.now)
        }
        try trust.folder.revokeDevice("kitchen-1", now: trust.now)
        #expect(throws: TrustError(.invalidArgument, "")) {
            try trust.folder.enrollDevice(name: nil, id: id, now: trust.now)
        }
    }

    @Test func `what is unknown or revoked already cannot be revoked`() throws {
        let certificate = try trust.provider("com.example.chat").credential
        let key = try trust.providerKey()
        let device = try trust.device().device
        for id in ["", "nobody", device.id.name] {
            #expect(throws: TrustError(.unknownID, "")) { try trust.folder.revokeCredential(id, now: trust.now) }
        }
        #expect(throws: TrustError(.unknownID, "")) { try trust.folder.revokeDevice(key.id, now: trust.now) }
        try trust.folder.revokeCredential(certificate.id, now: trust.now)
        try trust.folder.revokeCredential(key.id, now: trust.now)
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        #expect(throws: TrustError(.alreadyRevoked, "")) {
            try trust.folder.revokeCredential(certificate.id, now: trust.now)
        }
        #expect(throws: TrustError(.alreadyRevoked, "")) { try trust.folder.revokeCredential(key.id, now: trust.now) }
        #expect(throws: TrustError(.alreadyRevoked, "")) {
            try trust.folder.revokeDevice(device.id.name, now: trust.now)
        }
    }

    @Test func `many revoke at once and none is lost`() async throws {
        let ids = try (0..<12).map { _ in try trust.device().device }
        let (folder, now) = (trust.folder, trust.now)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in ids { group.addTask { try folder.revokeDevice(device.id.name, now: now) } }
            try await group.waitForAll()
        }
        let office = try trust.office()
        for device in ids { #expect(office.isRevoked(serial: device.serial, of: .device)) }
        #expect(try folder.enrolledDevices().allSatisfy { $0.revoked == now })
    }
}
