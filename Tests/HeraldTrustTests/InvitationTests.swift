import Crypto
import HeraldModel
import HeraldTestSupport
import SwiftASN1
import Testing
import X509

@testable import HeraldIdentity
@testable import HeraldTrust

struct InvitationTests {
    private let trust: TestTrust
    private let year = Duration.seconds(365 * 86_400)

    init() async throws {
        trust = try await TestTrust()
    }

    private func request(
        _ key: Certificate.PrivateKey = Certificate.PrivateKey(P256.Signing.PrivateKey()),
        name: String = "lamp"
    ) throws -> [UInt8] {
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: name)]),
            privateKey: key,
            attributes: CertificateSigningRequest.Attributes([])
        )
        var serializer = DER.Serializer()
        try serializer.serialize(request)
        return serializer.serializedBytes
    }

    private func invite(name: String? = nil, for lifetime: Duration = .seconds(3600)) async throws -> IssuedInvitation {
        try #require(try await trust.folder.invitations.make(name: name, lifetime: lifetime, now: trust.now).first)
    }

    private func activate(_ code: InvitationCode) async throws -> EnrolledDevice {
        try await trust.folder.devices.activate(code: code, request: try request(), now: trust.now, lifetime: year)
            .record
    }

    @Test func `an invitation makes exactly one device`() async throws {
        let issued = try await invite(name: "Hall")
        let device = try await activate(issued.code)
        #expect(device.name == "Hall")
        #expect(try await trust.folder.devices.all() == [device])
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(issued.code) }
        let listed = try #require(try await trust.folder.invitations.all().first)
        #expect(listed.state(at: trust.now) == .used)
        #expect(listed.used?.device == device.id)
    }

    /// The other nodes of a cluster, whose facts come when this node catches up.
    private struct OtherNodes: InvitationUses {
        let learn: @Sendable () async throws -> Void

        func use(_ invitation: Invitation, by device: DeviceID, at moment: WallTime) async throws -> Bool { true }
        func isAbandoned(_ device: DeviceID) -> Bool { false }
        func catchUp() async throws { try await learn() }
    }

    @Test func `an invitation and a device that another node has just made are good, and none is refused unasked`()
        async throws
    {
        let other = try await TestTrust()
        let issued = try #require(
            try await other.folder.invitations.make(name: "Hall", lifetime: .seconds(60), now: trust.now).first
        )
        let enrolled = try await other.folder.devices.enroll(name: "Lamp", now: trust.now).record
        var folder = trust.folder
        folder.invitationUses = OtherNodes { throw TrustError(.unavailable, "") }
        await #expect(throws: TrustError(.unavailable, "")) { try await folder.invitations.find(issued.code) }
        await #expect(throws: TrustError(.unavailable, "")) {
            try await folder.devices.renew(enrolled.id, request: try request(), now: trust.now, lifetime: year)
        }
        folder.invitationUses = OtherNodes { [store = trust.store, now = trust.now] in
            _ = try await store.add([issued.invitation], limit: 10, now: now)
            _ = try await store.add(enrolled, invitation: nil)
        }
        #expect(try await folder.invitations.find(issued.code)?.id == issued.invitation.id)
        let renewed = try await folder.devices.renew(
            enrolled.id,
            request: try request(),
            now: trust.now,
            lifetime: year
        )
        #expect(renewed.record.id == enrolled.id)
        let stranger = InvitationCode(authority: try #require(try folder.publicAuthorities().first))
        #expect(try await folder.invitations.find(stranger) == nil)
    }

    @Test func `the ledger has only the hash of a code`() async throws {
        let issued = try await invite()
        let found = try #require(
            try await trust.store.invitations(lookupKey: Invitation.lookupKey(issued.code.digest)).first
        )
        #expect(found.digest == issued.code.digest && found.digest.count == 32)
    }

    @Test func `the request's name counts if the invitation has none`() async throws {
        #expect(try await activate(try await invite().code).name == "lamp")
        let issued = try await invite()
        let odd = try request(name: "bell\u{7}")
        let device = try await trust.folder.devices.activate(
            code: issued.code,
            request: odd,
            now: trust.now,
            lifetime: year
        )
        #expect(device.record.name == nil)
    }

    @Test func `an invitation ends when it expires or is withdrawn`() async throws {
        let late = try await invite(for: .seconds(60))
        let withdrawn = try await invite()
        _ = try await trust.folder.invitations.withdraw(withdrawn.invitation.id, now: trust.now)
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(withdrawn.code) }
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.invitations.withdraw(withdrawn.invitation.id, now: trust.now)
        }
        trust.clock.advance(by: .seconds(60))
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(late.code) }
        let all = try await trust.folder.invitations.all()
        let states = Dictionary(uniqueKeysWithValues: all.map { ($0.id, $0.state(at: trust.now)) })
        #expect(states == [late.invitation.id: .expired, withdrawn.invitation.id: .withdrawn])
    }

    @Test func `an invalid request leaves the invitation open`() async throws {
        let issued = try await invite()
        for bad in [[], Array("garbage".utf8), try request(Certificate.PrivateKey(P521.Signing.PrivateKey()))] {
            await #expect(throws: TrustError(.badRequest, "")) {
                try await trust.folder.devices.activate(code: issued.code, request: bad, now: trust.now, lifetime: year)
            }
        }
        _ = try await activate(issued.code)
    }

    @Test func `the code of another service is refused`() async throws {
        let other = try await TestTrust()
        let foreign = try #require(
            try await other.folder.invitations.make(name: nil, lifetime: year, now: trust.now).first
        )
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(foreign.code) }
    }

    @Test func `of simultaneous requests with one code, one gets a certificate`() async throws {
        let issued = try await invite()
        let (folder, now, request, year) = (trust.folder, trust.now, try request(), year)
        let made = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    let code = issued.code
                    return (try? await folder.devices.activate(code: code, request: request, now: now, lifetime: year))
                        != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(made == 1)
        #expect(try await trust.folder.devices.all().count == 1)
    }

    @Test func `a running service knows the state of a code at once`() async throws {
        let service = try await trust.service()
        let issued = try await invite(for: .seconds(60))
        #expect(try await service.invitationState(of: issued.code, at: trust.now) == .open)
        #expect(try await service.invitationState(of: issued.code, at: trust.now + .seconds(60)) == .expired)
        _ = try await activate(issued.code)
        #expect(try await service.invitationState(of: issued.code, at: trust.now) == .used)
        #expect(try await service.invitationState(of: InvitationCode(authority: []), at: trust.now) == nil)
    }

    @Test func `a renewed device is one device, and its revocation covers all its certificates`() async throws {
        let device = try await activate(try await invite().code)
        trust.clock.advance(by: .seconds(60))
        let renewed = try await trust.folder.devices.renew(
            device.id,
            request: try request(),
            now: trust.now,
            lifetime: year
        )
        #expect(renewed.record.id == device.id && renewed.record.serial != device.serial)
        #expect(renewed.record.expires > device.expires)
        #expect(try await trust.folder.devices.all() == [renewed.record])
        let service = try await trust.service()
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        _ = await service.reload()
        #expect(service.isRevoked(serial: device.serial, of: .device))
        #expect(service.isRevoked(serial: renewed.record.serial, of: .device))
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.devices.renew(device.id, request: try request(), now: trust.now, lifetime: year)
        }
    }

    @Test func `a device has a bounded number of valid certificates`() async throws {
        let device = try await activate(try await invite().code)
        for _ in 1..<DeviceCertificates.maximumPerDevice {
            _ = try await trust.folder.devices.renew(device.id, request: try request(), now: trust.now, lifetime: year)
        }
        await #expect(throws: TrustError(.tooMany, "")) {
            try await trust.folder.devices.renew(device.id, request: try request(), now: trust.now, lifetime: year)
        }
        trust.clock.advance(by: year + .seconds(60))
        _ = try await trust.folder.devices.renew(device.id, request: try request(), now: trust.now, lifetime: year)
    }

    @Test func `the number of open invitations is bounded`() async throws {
        let most = Invitations.maximumOpen
        _ = try await trust.folder.invitations.make(name: nil, lifetime: .seconds(60), count: most, now: trust.now)
        await #expect(throws: TrustError(.tooMany, "")) { try await invite() }
        trust.clock.advance(by: .seconds(60))
        _ = try await invite()
    }
}

struct CertificatesMessageTests {
    @Test func `a message is decoded to its certificates`() async throws {
        let trust = try await TestTrust()
        let certificates = [trust.folder.root.der, trust.folder.deviceAuthority.der]
        let message = try CertificatesMessage.encode(certificates)
        #expect(Set(try CertificatesMessage.decode(message).map(PEMBundle.der)) == Set(certificates))
        #expect(try CertificatesMessage.decode(CertificatesMessage.encode([])).isEmpty)
    }

    @Test func `an invalid message is refused`() async throws {
        let trust = try await TestTrust()
        let message = try CertificatesMessage.encode([trust.folder.root.der])
        var hostile: [[UInt8]] = [
            [], [0], [0x30], [0x30, 0x80], Array(repeating: 0x30, count: 5000), trust.folder.root.der,
        ]
        hostile += stride(from: 0, to: message.count, by: 7).map { Array(message.prefix($0)) }
        hostile.append(try CertificatesMessage.encode(Array(repeating: trust.folder.root.der, count: 17)))
        for bytes in hostile {
            #expect(throws: TrustError(.damaged, "")) { try CertificatesMessage.decode(bytes) }
        }
    }
}
