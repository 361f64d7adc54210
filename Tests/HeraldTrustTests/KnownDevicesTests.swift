import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing
import X509

/// What is remembered of a device's certificate, and what is not.
struct KnownDevicesTests {
    private let trust: TestTrust
    private let office: TrustOffice

    init() throws {
        trust = try TestTrust()
        office = try trust.office()
    }

    private func judge(_ der: [UInt8], at moment: WallTime) -> PeerRefusal.Code? {
        switch office.peers.device(certificate: der, at: moment) {
        case .success: nil
        case .failure(let refusal): refusal.code
        }
    }

    private func enroll(_ id: String) throws -> (DeviceIdentity, [UInt8]) {
        let issued = try trust.device(id)
        let der = PEMBundle.der(try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0])
        return (try office.peers.device(certificate: der, at: trust.now).get(), der)
    }

    @Test func `who comes again is the same`() throws {
        let (first, der) = try enroll("kitchen")
        let (other, _) = try enroll("garage")
        for _ in 0..<3 { #expect(try office.peers.device(certificate: der, at: trust.now).get() == first) }
        #expect(other.id != first.id)
    }

    @Test func `who was let in and is revoked meanwhile is refused, and no other`() throws {
        let (kitchen, kitchenDER) = try enroll("kitchen")
        let (_, garageDER) = try enroll("garage")
        try trust.folder.revokeDevice(kitchen.id.name, now: trust.now)
        #expect(office.reload().revocations == [.device])
        #expect(judge(kitchenDER, at: trust.now) == .revoked)
        #expect(judge(garageDER, at: trust.now) == nil)
    }

    @Test func `who was let in is judged by the clock each time`() throws {
        let (identity, der) = try enroll("kitchen")
        #expect(judge(der, at: identity.expires) == nil)
        #expect(judge(der, at: identity.expires + .seconds(1)) == .expired)
        #expect(judge(der, at: trust.now - .seconds(2 * 86_400)) == .notYetValid)
        #expect(judge(der, at: trust.now) == nil)
    }

    @Test func `who was refused once is let in when the reason is gone`() throws {
        let issued = try trust.device("kitchen")
        let der = PEMBundle.der(try PEMBundle(pem: Array(issued.pem.utf8), path: "pem").certificates[0])
        #expect(judge(der, at: trust.now - .seconds(2 * 86_400)) == .notYetValid)
        #expect(judge(der, at: trust.now) == nil)
    }

    @Test func `a certificate that differs in one byte is another one`() throws {
        let (_, der) = try enroll("kitchen")
        // Within the extended key usage, clientAuth (…3.2) becomes emailProtection (…3.4).
        let clientAuth: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]
        let start = try #require(der.indices.first { der[$0...].starts(with: clientAuth) })
        var changed = der
        changed[start + 7] = 4
        #expect(judge(changed, at: trust.now) == .wrongPurpose)
        #expect(judge(der, at: trust.now) == nil)
    }
}
