import Crypto
import HeraldModel
import HeraldTestSupport
import SwiftASN1
import Testing
import X509

@testable import HeraldTrust

struct InvitationTests {
    private let trust: TestTrust
    private let year = Duration.seconds(365 * 86_400)

    init() throws {
        trust = try TestTrust()
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

    private func invite(name: String? = nil, for lifetime: Duration = .seconds(3600)) throws -> IssuedInvitation {
        try #require(try trust.folder.invite(name: name, lifetime: lifetime, now: trust.now).first)
    }

    private func activate(_ code: InvitationCode) throws -> EnrolledDevice {
        try trust.folder.activateDevice(code: code, request: try request(), now: trust.now, lifetime: year).record
    }

    @Test func `an invitation makes one device, and then no other`() throws {
        let issued = try invite(name: "Hall")
        let device = try activate(issued.code)
        #expect(device.name == "Hall")
        #expect(try trust.folder.enrolledDevices() == [device])
        #expect(throws: TrustError(.notInvited, "")) { try activate(issued.code) }
        let listed = try #require(try trust.folder.invitations().first)
        #expect(listed.state(at: trust.now) == .used)
        #expect(listed.used?.device == device.id)
    }

    @Test func `of a code only a hash is kept`() throws {
        let text = try invite().code.text
        let ledger = String(decoding: try TrustFile.read(trust.path + "/trust/ledger.jsonl", .secret), as: UTF8.self)
        #expect(!ledger.contains(text) && !ledger.contains(text.replacing("-", with: "")))
        #expect(!ledger.contains(text.suffix(20).replacing("-", with: "")))
    }

    @Test func `a name in the request counts where the invitation has none`() throws {
        #expect(try activate(try invite().code).name == "lamp")
        let issued = try invite()
        let odd = try request(name: "bell\u{7}")
        let device = try trust.folder.activateDevice(code: issued.code, request: odd, now: trust.now, lifetime: year)
        #expect(device.record.name == nil)
    }

    @Test func `an invitation ends with its time, or when it is withdrawn`() throws {
        let late = try invite(for: .seconds(60))
        let withdrawn = try invite()
        _ = try trust.folder.withdrawInvitation(withdrawn.invitation.id, now: trust.now)
        #expect(throws: TrustError(.notInvited, "")) { try activate(withdrawn.code) }
        #expect(throws: TrustError(.alreadyRevoked, "")) {
            try trust.folder.withdrawInvitation(withdrawn.invitation.id, now: trust.now)
        }
        trust.clock.advance(by: .seconds(60))
        #expect(throws: TrustError(.notInvited, "")) { try activate(late.code) }
        let states = try trust.folder.invitations().map { $0.state(at: trust.now) }
        #expect(states == [.expired, .withdrawn])
    }

    @Test func `a request that cannot be accepted leaves the invitation as it is`() throws {
        let issued = try invite()
        for bad in [[], Array("garbage".utf8), try request(Certificate.PrivateKey(P521.Signing.PrivateKey()))] {
            #expect(throws: TrustError(.badRequest, "")) {
                try trust.folder.activateDevice(code: issued.code, request: bad, now: trust.now, lifetime: year)
            }
        }
        _ = try activate(issued.code)
    }

    @Test func `the code of another service lets nobody in`() throws {
        let other = try TestTrust()
        let foreign = try #require(try other.folder.invite(name: nil, lifetime: year, now: trust.now).first)
        #expect(throws: TrustError(.notInvited, "")) { try activate(foreign.code) }
    }

    @Test func `a crash before the entry is whole leaves the code good, one after it has used it up`() throws {
        let issued = try invite()
        let path = trust.path + "/trust/ledger.jsonl"
        let before = try TrustFile.read(path, .secret)
        _ = try activate(issued.code)
        let after = try TrustFile.read(path, .secret)
        // The entry torn at every byte: there is no device, and the code works. Whole: there is one, and it does not.
        for length in [before.count, before.count + 1, after.count - 1] {
            try TrustFile.write(Array(after.prefix(length)), to: path, .secret)
            #expect(try trust.folder.enrolledDevices().isEmpty)
            #expect(try trust.folder.invitations().first?.state(at: trust.now) == .open)
        }
        _ = try activate(issued.code)
        try TrustFile.write(after, to: path, .secret)
        #expect(try trust.folder.enrolledDevices().count == 1)
        #expect(throws: TrustError(.notInvited, "")) { try activate(issued.code) }
    }

    @Test func `the book of a running service knows what the ledger says`() throws {
        let office = try trust.office()
        let issued = try invite(for: .seconds(60))
        #expect(office.invitations.state(of: issued.code, at: trust.now) == nil)
        _ = office.reload()
        #expect(office.invitations.state(of: issued.code, at: trust.now) == .open)
        #expect(office.invitations.state(of: issued.code, at: trust.now + .seconds(60)) == .expired)
        _ = try activate(issued.code)
        _ = office.reload()
        #expect(office.invitations.state(of: issued.code, at: trust.now) == .used)
    }

    @Test func `a renewed device is one device, and revoking it ends all its certificates`() throws {
        let device = try activate(try invite().code)
        trust.clock.advance(by: .seconds(60))
        let renewed = try trust.folder.renewDevice(device.id, request: try request(), now: trust.now, lifetime: year)
        #expect(renewed.record.id == device.id && renewed.record.serial != device.serial)
        #expect(renewed.record.expires > device.expires)
        #expect(try trust.folder.enrolledDevices() == [renewed.record])
        let office = try trust.office()
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        _ = office.reload()
        #expect(office.isRevoked(serial: device.serial, of: .device))
        #expect(office.isRevoked(serial: renewed.record.serial, of: .device))
        #expect(throws: TrustError(.alreadyRevoked, "")) {
            try trust.folder.renewDevice(device.id, request: try request(), now: trust.now, lifetime: year)
        }
    }

    @Test func `a device has a bounded number of certificates in force`() throws {
        let device = try activate(try invite().code)
        for _ in 1..<TrustFolder.maximumCertificatesPerDevice {
            _ = try trust.folder.renewDevice(device.id, request: try request(), now: trust.now, lifetime: year)
        }
        #expect(throws: TrustError(.tooMany, "")) {
            try trust.folder.renewDevice(device.id, request: try request(), now: trust.now, lifetime: year)
        }
        trust.clock.advance(by: year + .seconds(60))
        _ = try trust.folder.renewDevice(device.id, request: try request(), now: trust.now, lifetime: year)
    }

    @Test func `there is a bounded number of open invitations`() throws {
        let most = TrustFolder.maximumInvitations
        _ = try trust.folder.invite(name: nil, lifetime: .seconds(60), count: most, now: trust.now)
        #expect(throws: TrustError(.tooMany, "")) { try invite() }
        trust.clock.advance(by: .seconds(60))
        _ = try invite()
    }
}

struct CertificatesMessageTests {
    @Test func `a message gives back its certificates`() throws {
        let trust = try TestTrust()
        let certificates = [trust.folder.root.der, trust.folder.deviceAuthority.der]
        let message = try CertificatesMessage.encode(certificates)
        #expect(Set(try CertificatesMessage.decode(message).map(PEMBundle.der)) == Set(certificates))
        #expect(try CertificatesMessage.decode(CertificatesMessage.encode([])).isEmpty)
    }

    @Test func `what is no message is refused`() throws {
        let trust = try TestTrust()
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
