import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing
import X509

/// The cache of device certificates.
struct DeviceCertificateCacheTests {
    private let trust: TestTrust
    private let service: TrustService

    init() async throws {
        trust = try await TestTrust()
        service = try await trust.service()
    }

    private func judge(_ der: [UInt8], at moment: WallTime) -> PeerRefusal.Code? {
        switch service.peers.device(certificate: der, at: moment) {
        case .success: nil
        case .failure(let refusal): refusal.code
        }
    }

    private func enroll(_ id: String) async throws -> (DeviceIdentity, [UInt8]) {
        let issued = try await trust.device(id)
        let der = PEMBundle.der(try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0])
        return (try service.peers.device(certificate: der, at: trust.now).get(), der)
    }

    @Test func `a returning device has the same identity`() async throws {
        let (first, der) = try await enroll("kitchen")
        let (other, _) = try await enroll("garage")
        for _ in 0..<3 { #expect(try service.peers.device(certificate: der, at: trust.now).get() == first) }
        #expect(other.id != first.id)
    }

    @Test func `a revoked device is refused although it is cached, and no other`() async throws {
        let (kitchen, kitchenDER) = try await enroll("kitchen")
        let (_, garageDER) = try await enroll("garage")
        try await trust.folder.devices.revoke(kitchen.id.name, now: trust.now)
        #expect(await service.reload().revocations == [.device])
        #expect(judge(kitchenDER, at: trust.now) == .revoked)
        #expect(judge(garageDER, at: trust.now) == nil)
    }

    @Test func `the dates of a cached certificate are checked each time`() async throws {
        let (identity, der) = try await enroll("kitchen")
        #expect(judge(der, at: identity.expires) == nil)
        #expect(judge(der, at: identity.expires + .seconds(1)) == .expired)
        #expect(judge(der, at: trust.now - .seconds(2 * 86_400)) == .notYetValid)
        #expect(judge(der, at: trust.now) == nil)
    }

    @Test func `a refused device is accepted when the reason is gone`() async throws {
        let issued = try await trust.device("kitchen")
        let der = PEMBundle.der(try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0])
        #expect(judge(der, at: trust.now - .seconds(2 * 86_400)) == .notYetValid)
        #expect(judge(der, at: trust.now) == nil)
    }

    @Test func `a certificate with one different byte is another one`() async throws {
        let (_, der) = try await enroll("kitchen")
        // Within the extended key usage, clientAuth (…3.2) becomes emailProtection (…3.4).
        let clientAuth: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]
        let start = try #require(der.indices.first { der[$0...].starts(with: clientAuth) })
        var changed = der
        changed[start + 7] = 4
        #expect(judge(changed, at: trust.now) == .wrongPurpose)
        #expect(judge(der, at: trust.now) == nil)
    }
}
