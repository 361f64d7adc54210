import Crypto
import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import SwiftASN1
import Testing
import X509

@testable import HeraldDevice
@testable import HeraldIdentity

struct DeviceFolderTests {
    private let trust: TestTrust
    private let folder: DeviceFolder
    private let service = DeviceFolder.Service(
        announced: [.init(host: "push.example.com", port: 5223, activation: 2191)],
        announcementKey: key.publicKey.x963Representation.base64EncodedString(),
        announcement: 7
    )
    private static let key = P256.Signing.PrivateKey()

    init() async throws {
        trust = try await TestTrust()
        folder = DeviceFolder(trust.path + "/deep/down/device/")
    }

    private func save(replaces: Bool = false) async throws {
        let (_, pem) = try await trust.device()
        try folder.save(identity: Array(pem.utf8), authority: Array(pem.utf8), service: service, replaces: replaces)
    }

    private func mode(_ path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test func `the folder is private to its owner, and is read again`() async throws {
        #expect(!folder.isActivated)
        try await save()
        #expect(folder.isActivated)
        #expect(try mode(folder.path) == 0o700)
        #expect(try mode(folder.identityPath) == 0o600)
        #expect(try folder.service() == service)
        let device = try #require(try await trust.folder.devices.all().first)
        #expect(try folder.credential().id == device.id)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == ["ca.pem", "identity.pem", "service.json"])
    }

    @Test func `service.json has snake_case names, and at least one address`() async throws {
        try await save()
        let text = try String(contentsOfFile: folder.servicePath, encoding: .utf8)
        #expect(text.contains(#""host" : "push.example.com""#) && text.contains(#""announcement_key" : "#))
        for wrong in ["{}", #"{"addresses":[],"announcement":1,"announcement_key":""}"#] {
            try Data(wrong.utf8).write(to: URL(fileURLWithPath: folder.servicePath))
            #expect(throws: EnrollmentError(.folder, "")) { try folder.service() }
        }
    }

    // MARK: - Announcements

    private func announcement(_ version: Int64, _ hosts: [String], key: P256.Signing.PrivateKey = key) throws -> String
    {
        try Announcement(
            version: version,
            addresses: hosts.map { .init(host: $0, port: 5223, activation: 2191) },
            authorities: [trust.folder.root.der]
        ).signed(with: key)
    }

    @Test func `a newer announcement replaces addresses and authorities`() async throws {
        try await save()
        #expect(try folder.take(try announcement(8, ["a.example.com", "b.example.com"]))?.version == 8)
        #expect(try folder.service().addresses.map(\.host) == ["a.example.com", "b.example.com"])
        #expect(try folder.authorities() == DeviceFolder.pem([trust.folder.root.der]))
        // One without addresses leaves those that the device has.
        #expect(try folder.take(try announcement(9, []))?.version == 9)
        #expect(try folder.service().addresses.map(\.host) == ["a.example.com", "b.example.com"])
    }

    @Test func `a connection and renewals that take announcements at once leave the newest`() async throws {
        try await save()
        let texts = try (8...40).map { try announcement(Int64($0), ["host-\($0).example.com"]) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for text in texts { group.addTask { _ = try folder.take(text) } }
            try await group.waitForAll()
        }
        #expect(try folder.service().announcement == 40)
        #expect(try folder.service().addresses.map(\.host) == ["host-40.example.com"])
    }

    @Test func `an earlier announcement is not taken`() async throws {
        try await save()
        for version in [1, 6, 7] as [Int64] {
            #expect(try folder.take(try announcement(version, ["a.example.com"])) == nil)
        }
        #expect(try folder.service() == service)
    }

    @Test func `an announcement of another key is not taken, nor one that was changed`() async throws {
        try await save()
        let foreign = try announcement(8, ["a.example.com"], key: P256.Signing.PrivateKey())
        let (own, other) = (try announcement(8, ["a.example.com"]), try announcement(8, ["b.example.com"]))
        let (a, b) = (own.split(separator: "."), other.split(separator: "."))
        let longSigned = String(repeating: "A", count: Announcement.maximumBytes + 1)
        for wrong in [foreign, "\(a[0]).\(b[1]).\(a[2])", "\(a[0]).\(a[1])", "", "..", own + ".x", longSigned] {
            #expect(throws: EnrollmentError(.untrusted, "")) { try folder.take(wrong) }
        }
        #expect(try folder.service() == service)
    }

    @Test func `a setting makes its address the preferred one, with the port of the device's present one`() async throws
    {
        try await save()
        try folder.prefer(try ServiceAddress("new.example.com:443"), port: nil)
        #expect(
            try folder.service().addresses.map { "\($0.host):\($0.port):\($0.activation)" } == [
                "new.example.com:5223:443", "push.example.com:5223:2191",
            ]
        )
        try folder.prefer(try ServiceAddress("push.example.com"), port: 8883)
        #expect(try folder.service().addresses.first?.port == 8883)
        // An announcement does not take it away, as long as there is the setting.
        #expect(try folder.take(try announcement(8, ["a.example.com"])) != nil)
        #expect(try folder.service().addresses.map(\.host) == ["push.example.com", "a.example.com"])
        try folder.prefer(nil, port: nil)
        #expect(try folder.take(try announcement(9, ["a.example.com"])) != nil)
        #expect(try folder.service().addresses.map(\.host) == ["a.example.com"])
    }

    @Test func `an address is in front only as long as the setting`() async throws {
        try await save()
        for name in ["typo.example.com", "new.example.com"] { try folder.prefer(try ServiceAddress(name), port: nil) }
        #expect(try folder.service().addresses.map(\.host) == ["new.example.com", "push.example.com"])
        try folder.prefer(nil, port: nil)
        #expect(try folder.service().addresses.map(\.host) == ["push.example.com", "new.example.com"])
    }

    @Test func `an identity is overwritten only with replace`() async throws {
        try await save()
        let first = try folder.identity()
        await #expect(throws: EnrollmentError(.folder, "")) { try await save() }
        #expect(try folder.identity() == first)
        try await save(replaces: true)
        #expect(try folder.identity() != first)
    }

    @Test func `a folder accessible to others is refused, and the error says how to fix it`() async throws {
        try await save()
        chmod(folder.identityPath, 0o640)
        let exposed = #expect(throws: EnrollmentError.self) { try folder.credential() }
        #expect(exposed?.message.contains("chmod 600 \(folder.identityPath)") == true)
        chmod(folder.identityPath, 0o600)
        chmod(folder.path, 0o755)
        let open = #expect(throws: EnrollmentError.self) { try folder.credential() }
        #expect(open?.message.contains("chmod 700 \(folder.path)") == true)
        #expect(throws: EnrollmentError(.folder, "")) { try folder.prepare() }
    }

    @Test func `an empty folder says what to do`() throws {
        try folder.prepare()
        let error = #expect(throws: EnrollmentError.self) { try folder.credential() }
        #expect(error?.message.contains("herald agent activate") == true)
    }
}

struct DeviceKeyTests {
    private let trust: TestTrust
    private let key = DeviceKey()

    init() async throws {
        trust = try await TestTrust()
    }

    private func issue(_ request: [UInt8], from trust: TestTrust, id: String = "lamp") async throws -> [Certificate] {
        let issued = try await trust.folder.devices.enroll(
            name: nil,
            id: DeviceID(id),
            request: request,
            now: trust.now
        )
        return [issued.certificate]
    }

    @Test func `an issued certificate becomes an identity`() async throws {
        let answer = try await issue(try key.request(name: "lamp"), from: trust)
        let authorities = [trust.folder.root.certificate, trust.folder.deviceAuthority.certificate]
        let identity = try key.identity(from: answer, authorities: authorities, expected: nil)
        #expect(identity.credential.id.name == "lamp")
        let bundle = try PEMBundle(pem: identity.pem, path: "")
        #expect(bundle.certificates == [answer[0], trust.folder.deviceAuthority.certificate] && bundle.key != nil)
    }

    @Test func `a renewal asks for the names that the device has`() async throws {
        let present = try await issue(try DeviceKey().request(name: "lamp"), from: trust)[0]
        let request = try CertificateSigningRequest(derEncoded: try key.request(following: present))
        #expect(request.subject == present.subject)
        let extensions = try #require(try request.attributes.extensionRequest?.extensions)
        #expect(try extensions.subjectAlternativeNames == present.extensions.subjectAlternativeNames)
        #expect(request.publicKey != present.publicKey)
    }

    @Test func `an answer with an unusable certificate is refused`() async throws {
        let authorities = [trust.folder.deviceAuthority.certificate]
        let another = try await issue(try DeviceKey().request(name: "lamp"), from: trust, id: "a")
        let ours = try await issue(try key.request(name: "lamp"), from: trust, id: "b")
        let foreign = try await issue(try key.request(name: "lamp"), from: try await TestTrust())
        let cases: [([Certificate], [Certificate], DeviceID?)] = [
            ([], authorities, nil), (another, authorities, nil), (ours, [], nil), (foreign, authorities, nil),
            (ours, authorities, DeviceID("a")), (ours, ours, nil),
        ]
        for (answer, authorities, expected) in cases {
            #expect(throws: EnrollmentError(.badAnswer, "")) {
                try key.identity(from: answer, authorities: authorities, expected: expected)
            }
        }
    }

    @Test(arguments: [
        ("https://push.example.com:2191", "https://push.example.com:2191"),
        ("push.example.com", "https://push.example.com:2191"),
        ("https://push.example.com/", "https://push.example.com:2191"),
        ("10.0.0.1:1", "https://10.0.0.1:1"), ("https://[::1]:7", "https://[::1]:7"), ("HTTPS://a", "https://a:2191"),
    ])
    func `an address may lack scheme and port`(_ text: String, _ url: String) throws {
        #expect(try ServiceAddress(text).description == url)
    }

    @Test(arguments: [
        "", "http://a", "https://", "https://a:0", "https://a:70000", "https://u@a", "https://a/b", "https://a?b",
        "a b", "mqtts://a",
    ])
    func `a malformed address is refused`(_ text: String) {
        #expect(throws: EnrollmentError(.badAddress, "")) { try ServiceAddress(text) }
    }
}

struct NextCredentialTests {
    @Test func `a client takes its device's next certificate, and no other device's`() async throws {
        let trust = try await TestTrust()
        let (device, pem) = try await trust.device("lamp")
        let client = try DeviceClient(
            DeviceConfiguration(
                host: "localhost",
                port: 1,
                credential: DeviceCredential(pem: Array(pem.utf8)),
                apps: []
            )
        )
        let before = client.context
        let key = DeviceKey()
        let next = try await trust.folder.devices.renew(
            device.id,
            request: try key.request(name: "lamp"),
            now: trust.now,
            lifetime: .seconds(86_400)
        )
        let identity = try key.identity(
            from: [next.certificate],
            authorities: [trust.folder.deviceAuthority.certificate],
            expected: device.id
        )
        try client.replaceCredential(identity.credential)
        #expect(client.context !== before)
        let other = try DeviceCredential(pem: Array(try await trust.device("bell").pem.utf8))
        #expect(throws: DeviceError(.badIdentity, "")) { try client.replaceCredential(other) }
    }
}
