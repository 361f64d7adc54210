import Crypto
import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

struct ReadingTests {
    @Test func `a provider token is shown as it is, whether it is valid or not`() throws {
        let key = P256.Signing.PrivateKey()
        let issued = WallTime(seconds: 1_772_366_400)
        let token = try ProviderToken.sign(key: key, keyID: "ABCDE12345", team: "TEAM000001", issued: issued)
        let reading = ProviderTokenReading(Array(token.utf8))
        #expect(reading.header == #"{"alg":"ES256","kid":"ABCDE12345"}"#)
        #expect(reading.claims == #"{"iss":"TEAM000001","iat":1772366400}"#)
        #expect(reading.keyID == "ABCDE12345" && reading.team == "TEAM000001" && reading.issued == issued)
        let broken = ProviderTokenReading(Array("e30.!.".utf8))
        #expect(broken.header == "{}" && broken.claims == nil && broken.keyID == nil)
        #expect(ProviderTokenReading([UInt8](repeating: 46, count: 9000)).header == nil)
    }

    @Test func `a certificate is read, and a private key is refused`() async throws {
        let trust = try await TestTrust()
        let pem = try await trust.provider("com.example.app").pem
        #expect(throws: TrustError.self) { try CertificateReading.all(pem: Array(pem.utf8)) }
        let end = "-----END CERTIFICATE-----\n"
        let certificate = try #require(pem.components(separatedBy: end).first) + end
        let reading = try #require(try CertificateReading.all(pem: Array(certificate.utf8)).first)
        #expect(reading.kind == .certificate && reading.key == "P-256")
        #expect(reading.topics.map(\.name) == ["com.example.app"])
        #expect(reading.environments == [.production, .sandbox])
        for text in ["", "no PEM", "-----BEGIN X-----\nAA==\n-----END X-----\n"] {
            #expect(throws: TrustError.self) { try CertificateReading.all(pem: Array(text.utf8)) }
        }
    }

    @Test func `the console's key reaches every topic and claims none`() async throws {
        let trust = try await TestTrust()
        let service = try await trust.service()
        let key = P256.Signing.PrivateKey()
        service.admitConsole(ProviderKey(console: key.publicKey, created: trust.now))
        let id = ProviderKey.consoleID
        let token = try ProviderToken.sign(key: key, keyID: id, team: id, issued: trust.now)
        guard case .valid(let identity) = service.providerTokens.verify(Array(token.utf8), now: trust.now) else {
            Issue.record("the console's token is refused")
            return
        }
        let topic = try #require(Topic("com.example.unowned"))
        let permission = service.providerTokens.permission(for: topic, team: identity.team, scope: identity.topics)
        #expect(permission == .allowed)
        // It stays when the folder is read again, and is in no file.
        _ = try await trust.providerKey("com.example.app")
        _ = await service.reload()
        #expect(service.providerTokens.credentials.key(id) != nil)
        #expect(try trust.folder.providerKeys().allSatisfy { $0.id != id })
    }
}
