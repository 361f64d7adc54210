import Crypto
import CryptoExtras
import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

struct IssuingTests {
    private let trust: TestTrust

    init() async throws {
        trust = try await TestTrust()
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

    @Test func `a PEM file has the certificate, its chain, and the key, in that order`() async throws {
        let pem = try await trust.provider("com.example.chat").pem
        #expect(try kinds(pem) == ["CERTIFICATE", "CERTIFICATE", "PRIVATE KEY"])
        let bundle = try PEMBundle(pem: Array(pem.utf8), path: "pem")
        #expect(bundle.certificates[1] == trust.folder.providerAuthority.certificate)
        #expect(bundle.key?.publicKey == bundle.certificates[0].publicKey)
        #expect(pem.hasSuffix("-----END PRIVATE KEY-----\n"))
        #expect(try kinds(try await trust.device().pem) == ["CERTIFICATE", "CERTIFICATE", "PRIVATE KEY"])
    }

    @Test func `a certificate for a request has its key, not its names, and comes without a key`() async throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let document = try request(key, subject: "urn:herald:device:other")
        let encodings = [
            Array(document.pemString.utf8), document.derBytes,
            Array(document.pemString.replacing("CERTIFICATE REQUEST", with: "NEW CERTIFICATE REQUEST").utf8),
        ]
        for bytes in encodings {
            let issued = try await trust.folder.devices.enroll(name: "Lamp", request: bytes, now: trust.now)
            #expect(try kinds(issued.pem) == ["CERTIFICATE", "CERTIFICATE"])
            let certificate = try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0]
            #expect(certificate.publicKey == key.publicKey)
            let identity = try await trust.service().peers.device(
                certificate: PEMBundle.der(certificate),
                at: trust.now
            )
            .get()
            #expect(identity.id == issued.record.id)
        }
    }

    @Test func `a malformed request, one signed by another key, or one for a weak key is refused`() async throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        var forged = try request(key).derBytes
        forged[forged.count - 1] ^= 1
        let weak = Certificate.PrivateKey(try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: 1024)))
        let certificate = try await trust.provider("com.example.chat").pem
        for bytes in [[], Array("garbage".utf8), forged, try request(weak).derBytes, Array(certificate.utf8)] {
            await #expect(throws: TrustError(.badRequest, "")) {
                try await trust.folder.devices.enroll(name: nil, request: bytes, now: trust.now)
            }
        }
        #expect(try await trust.folder.devices.all().isEmpty)
    }

    @Test func `a running service accepts a new provider key's token after a reload`() async throws {
        let service = try await trust.service()
        let key = try await trust.providerKey("com.example.chat")
        let token = Array(try key.token(issued: trust.now).utf8)
        guard case .unknownKey = service.providerTokens.verify(token, now: trust.now) else {
            Issue.record("accepted before it is known")
            return
        }
        #expect(await service.reload().credentials)
        guard case .valid(let identity) = service.providerTokens.verify(token, now: trust.now) else {
            Issue.record("refused")
            return
        }
        #expect(service.providerTokens.mayPush(try #require(Topic("com.example.chat")), as: identity))
        try await trust.folder.providers.revoke(key.id, now: trust.now)
        #expect(await service.reload().credentials)
        guard case .refused(.invalidProviderToken, _) = service.providerTokens.verify(token, now: trust.now) else {
            Issue.record("accepted after its revocation")
            return
        }
    }

    @Test func `the file of a provider key has the name that clients expect, and PKCS 8`() async throws {
        let issued = try await trust.folder.providers.makeKey(
            team: "TEAM000001",
            topics: [],
            environments: [.sandbox],
            now: trust.now
        )
        #expect(issued.fileName == "AuthKey_\(issued.credential.id).p8")
        #expect(ProviderToken.isIdentifier(issued.credential.id))
        #expect(try kinds(issued.pem) == ["PRIVATE KEY"])
        let stored = try String(contentsOfFile: trust.path + "/trust/provider-keys.json", encoding: .utf8)
        #expect(!stored.contains("PRIVATE"))
    }

    @Test func `a topic that a certificate names belongs to its team, also after its revocation`() async throws {
        let topic = try #require(Topic("com.other.chat"))
        let service = try await trust.service()
        _ = try await trust.providerKey(team: "TEAM000001")
        let other = try await trust.provider("com.other.chat", team: "TEAM000002").credential
        _ = await service.reload()
        #expect(!service.providerTokens.credentials.mayPush(topic: topic, team: "TEAM000001"))
        try await trust.folder.providers.revoke(other.id, now: trust.now)
        _ = await service.reload()
        #expect(!service.providerTokens.credentials.mayPush(topic: topic, team: "TEAM000001"))
    }

    @Test func `a topic that a key names belongs to its team, also after its revocation`() async throws {
        let topic = try #require(Topic("com.other.chat"))
        let service = try await trust.service()
        let key = try await trust.providerKey("com.other.chat", team: "TEAM000002")
        // The first team keeps it, and the key may send all the same.
        _ = try await trust.providerKey("com.other.chat", team: "TEAM000003")
        _ = await service.reload()
        #expect(service.providerTokens.credentials.claims.owner(of: topic) == "TEAM000002")
        try await trust.folder.providers.revoke(key.id, now: trust.now)
        _ = await service.reload()
        #expect(service.providerTokens.credentials.claims.owner(of: topic) == "TEAM000002")
    }

    @Test func `the operator gives topics to a team, takes them from another only if told to, and releases them`()
        async throws
    {
        let (chat, mail) = (try #require(Topic("com.example.chat")), try #require(Topic("com.example.mail")))
        let service = try await trust.service()
        func owners() async -> [String?] {
            _ = await service.reload()
            return [chat, mail].map { service.providerTokens.credentials.claims.owner(of: $0) }
        }
        let topics = trust.folder.topics
        let voip = try #require(Topic("com.example.chat.voip"))
        let unowned = try #require(Topic("com.example.unowned"))
        _ = try await topics.claim([voip], for: "TEAM000001", takesOver: false, now: trust.now)
        #expect(await owners() == ["TEAM000001", nil])
        let error = await #expect(throws: TrustError(.invalidArgument, "")) {
            try await topics.claim([mail, chat], for: "TEAM000002", takesOver: false, now: trust.now)
        }
        #expect(error?.message.contains("belongs to team TEAM000001") == true)
        #expect(await owners() == ["TEAM000001", nil])
        _ = try await topics.claim([mail, chat], for: "TEAM000002", takesOver: true, now: trust.now)
        #expect(await owners() == ["TEAM000002", "TEAM000002"])
        await #expect(throws: TrustError(.unknownID, "")) { try await topics.release([voip, unowned]) }
        #expect(await owners() == ["TEAM000002", "TEAM000002"], "all or none")
        #expect(try await topics.release([voip, chat]) == [chat])
        #expect(await owners() == [nil, "TEAM000002"])
        await #expect(throws: TrustError(.unknownID, "")) { try await topics.release([chat]) }
    }

    @Test func `enrolling a device keeps the cache of provider tokens`() async throws {
        let service = try await trust.service()
        _ = try await trust.device()
        #expect(await service.reload().isUnchanged)
    }

    @Test func `invalid arguments are refused`() async throws {
        let topic = try #require(Topic("com.example.chat"))
        let folder = trust.folder
        let now = trust.now
        let both: Set<PushEnvironment> = [.production, .sandbox]
        for team in ["", "TEAM", "team000001", "TEAM-00001", "TEAM0000011"] {
            await #expect(throws: TrustError(.invalidArgument, "")) {
                try await folder.providers.makeKey(team: team, topics: [], environments: both, now: now)
            }
            await #expect(throws: TrustError(.invalidArgument, "")) {
                try await folder.providers.issueCertificate(topics: [topic], team: team, environments: both, now: now)
            }
        }
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await folder.providers.issueCertificate(topics: [], team: nil, environments: both, now: now)
        }
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await folder.providers.issueCertificate(topics: [topic], team: nil, environments: [], now: now)
        }
        let many = (0...ProviderCredentials.maximumTopics).compactMap { Topic("com.example.a\($0)") }
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await folder.providers.makeKey(team: "TEAM000001", topics: many, environments: both, now: now)
        }
        for name in ["", "a\nb", "a\u{1B}[31m", String(repeating: "n", count: 201)] {
            await #expect(throws: TrustError(.invalidArgument, "")) {
                try await folder.devices.enroll(name: name, now: now)
            }
        }
        #expect(try await folder.providers.all().isEmpty)
        #expect(try await folder.devices.all().isEmpty)
    }

    @Test func `a device's identifier is never reused, also after its revocation`() async throws {
        let id = try #require(DeviceID("kitchen-1"))
        _ = try await trust.folder.devices.enroll(name: nil, id: id, now: trust.now)
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await trust.folder.devices.enroll(name: nil, id: id, now: trust.now)
        }
        try await trust.folder.devices.revoke("kitchen-1", now: trust.now)
        await #expect(throws: TrustError(.invalidArgument, "")) {
            try await trust.folder.devices.enroll(name: nil, id: id, now: trust.now)
        }
    }

    @Test func `unknown and already revoked credentials cannot be revoked`() async throws {
        let certificate = try await trust.provider("com.example.chat").credential
        let key = try await trust.providerKey()
        let device = try await trust.device().device
        for id in ["", "nobody", device.id.name] {
            await #expect(throws: TrustError(.unknownID, "")) {
                try await trust.folder.providers.revoke(id, now: trust.now)
            }
        }
        await #expect(throws: TrustError(.unknownID, "")) {
            try await trust.folder.devices.revoke(key.id, now: trust.now)
        }
        try await trust.folder.providers.revoke(certificate.id, now: trust.now)
        try await trust.folder.providers.revoke(key.id, now: trust.now)
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.providers.revoke(certificate.id, now: trust.now)
        }
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.providers.revoke(key.id, now: trust.now)
        }
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        }
    }

    @Test func `a device of another node that comes during an attempt to revoke it does not look revoked`() async throws
    {
        let id = try #require(DeviceID("kitchen-1"))
        let certificate = EnrolledDevice.Certificate(serial: "42", expires: trust.now + .seconds(60))
        trust.store.addAtRevocation(EnrolledDevice(id: id, name: nil, certificate: certificate, created: trust.now))
        await #expect(throws: TrustError(.unknownID, "")) {
            try await trust.folder.devices.revoke("kitchen-1", now: trust.now)
        }
    }

    @Test func `concurrent revocations are all kept`() async throws {
        var ids: [EnrolledDevice] = []
        for _ in 0..<12 { ids.append(try await trust.device().device) }
        let (folder, now) = (trust.folder, trust.now)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in ids { group.addTask { try await folder.devices.revoke(device.id.name, now: now) } }
            try await group.waitForAll()
        }
        let service = try await trust.service()
        for device in ids { #expect(service.isRevoked(serial: device.serial, of: .device)) }
        #expect(try await folder.devices.all().allSatisfy { $0.revoked == now })
    }
}
