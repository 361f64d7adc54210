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
        func isAbandoned(_ use: Invitation.Use) -> Bool { false }
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

    /// Activates once for each request, all at the same time.
    private func activate(_ code: InvitationCode, with requests: [[UInt8]]) async throws -> [Certificate] {
        let (folder, now, year) = (trust.folder, trust.now, year)
        return await withTaskGroup(of: Certificate?.self) { group in
            for request in requests {
                group.addTask {
                    try? await folder.devices.activate(code: code, request: request, now: now, lifetime: year)
                        .certificate
                }
            }
            return await group.reduce(into: []) { made, one in
                if let one { made.append(one) }
            }
        }
    }

    @Test func `of simultaneous requests with one code, one gets a certificate`() async throws {
        let requests = try (0..<16).map { _ in try request() }
        #expect(try await activate(try await invite().code, with: requests).count == 1)
        #expect(try await trust.folder.devices.all().count == 1)
    }

    @Test func `simultaneous requests with one key get one certificate`() async throws {
        let certificates = try await activate(
            try await invite().code,
            with: Array(repeating: try request(), count: 16)
        )
        #expect(certificates.count == 16 && Set(certificates).count == 1)
        #expect(try await trust.folder.devices.all().count == 1)
    }

    // MARK: - Asking again

    private func again(_ code: InvitationCode, _ request: [UInt8]) async throws -> IssuedCertificate<EnrolledDevice> {
        try await trust.folder.devices.activate(code: code, request: request, now: trust.now, lifetime: year)
    }

    private func connect(_ device: DeviceID) async throws {
        try await trust.store.note([DeviceSighting(device: device, at: trust.now, address: "")])
    }

    @Test func `the same key gets the same certificate until its device has connected`() async throws {
        let issued = try await invite(for: .seconds(60))
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let first = try await again(issued.code, try request(key))
        trust.clock.advance(by: .seconds(90))
        // The code is used up and has expired, and the device exists.
        let second = try await again(issued.code, try request(key, name: "other"))
        #expect(PEMBundle.der(second.certificate) == PEMBundle.der(first.certificate))
        #expect(second.record == first.record)
        #expect(try await trust.folder.devices.all() == [first.record])
        #expect(try await trust.folder.invitations.all().map(\.taken) == [1])
        await #expect(throws: TrustError(.notInvited, "")) { try await again(issued.code, try request()) }
        try await connect(first.record.id)
        await #expect(throws: TrustError(.notInvited, "")) { try await again(issued.code, try request(key)) }
    }

    @Test func `a revoked device gets nothing again, and a renewed one not its first certificate`() async throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        for revokes in [true, false] {
            let issued = try await invite(for: .seconds(60))
            let device = try await again(issued.code, try request(key)).record
            trust.clock.advance(by: .seconds(61))
            if revokes {
                try await trust.folder.devices.revoke(device.id.name, now: trust.now)
            } else {
                _ = try await trust.folder.devices.renew(
                    device.id,
                    request: try request(),
                    now: trust.now,
                    lifetime: year
                )
            }
            await #expect(throws: TrustError(.notInvited, "")) { try await again(issued.code, try request(key)) }
        }
    }

    @Test func `a certificate of a former authority is not given again`() async throws {
        let (issued, key) = (try await invite(), Certificate.PrivateKey(P256.Signing.PrivateKey()))
        _ = try await again(issued.code, try request(key))
        let (layout, other) = (trust.folder.layout, try await TestTrust())
        let authority = try TrustFile.read(other.folder.layout.deviceAuthority, .secret)
        try TrustFile.write(authority, to: layout.deviceAuthority, .secret)
        let folder = try TrustFolder.load(at: layout.data) { [store = trust.store] _, _ in store }
        await #expect(throws: TrustError(.notInvited, "")) {
            try await folder.devices.activate(code: issued.code, request: request(key), now: trust.now, lifetime: year)
        }
    }

    @Test func `one key and two codes are two devices`() async throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let first = try await again(try await invite().code, try request(key)).record
        let second = try await again(try await invite().code, try request(key)).record
        #expect(first.id != second.id)
    }

    @Test func `the use of a device that never connected is free again after its revocation`() async throws {
        let issued = try await invite()
        let device = try await activate(issued.code)
        let revoked = try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        #expect(try await trust.folder.invitations.reopened(by: revoked, now: trust.now)?.id == issued.invitation.id)
        let next = try await activate(issued.code)
        try await connect(next.id)
        try await trust.folder.devices.revoke(next.id.name, now: trust.now)
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(issued.code) }
    }

    // MARK: - Known devices and labels

    private func invite(known id: String) async throws -> IssuedInvitation {
        let made = try await trust.folder.invitations.make(name: nil, lifetime: .seconds(60), for: id, now: trust.now)
        return try #require(made.first)
    }

    @Test func `an invitation for a known device gives it a further certificate, once`() async throws {
        let device = try await trust.folder.devices.enroll(name: "Lamp", now: trust.now).record
        try await connect(device.id)
        let issued = try await invite(known: device.id.name)
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let first = try await again(issued.code, try request(key))
        #expect(first.record.id == device.id)
        // Its former identity may still connect.
        try await connect(device.id)
        let second = try await again(issued.code, try request(key))
        #expect(PEMBundle.der(second.certificate) == PEMBundle.der(first.certificate))
        await #expect(throws: TrustError(.notInvited, "")) { try await again(issued.code, try request()) }
        let known = try await trust.folder.devices.device(device.id.name)
        #expect(known.certificates.count == 2 && known.name == "Lamp")
        #expect(try await trust.folder.devices.all().count == 1)
    }

    @Test func `a revoked device is not invited, nor one that is revoked later`() async throws {
        let device = try await trust.folder.devices.enroll(name: nil, now: trust.now).record
        await #expect(throws: TrustError(.unknownID, "")) { try await invite(known: "nobody") }
        await #expect(throws: TrustError(.invalidArgument, "")) {
            let invitations = trust.folder.invitations
            _ = try await invitations.make(name: "New", lifetime: year, for: device.id.name, now: trust.now)
        }
        let issued = try await invite(known: device.id.name)
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        await #expect(throws: TrustError(.notInvited, "")) { try await activate(issued.code) }
        await #expect(throws: TrustError(.alreadyRevoked, "")) { try await invite(known: device.id.name) }
    }

    @Test func `devices have the labels of their invitation`() async throws {
        let labels = ["room": "hall", "floor": "2"]
        let made = try await trust.folder.invitations.make(
            name: nil,
            lifetime: year,
            uses: 2,
            labels: labels,
            now: trust.now
        )
        let code = try #require(made.first).code
        for _ in 0..<2 { #expect(try await activate(code).labels.all == labels) }
        await #expect(throws: TrustError(.invalidArgument, "")) {
            let invitations = trust.folder.invitations
            _ = try await invitations.make(name: nil, lifetime: year, labels: ["": "x"], now: trust.now)
        }
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
