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
        host: "push.example.com",
        port: 5223,
        activation: "https://push.example.com:2191"
    )

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

    @Test func `service.json has snake_case names`() async throws {
        try await save()
        let text = try String(contentsOfFile: folder.servicePath, encoding: .utf8)
        #expect(text.contains(#""host" : "push.example.com""#) && !text.contains("server_name"))
        try Data(#"{"host":"a","port":1,"server_name":"b","activation":"https://c"}"#.utf8)
            .write(to: URL(fileURLWithPath: folder.servicePath))
        #expect(try folder.service().serverName == "b")
        try Data("{}".utf8).write(to: URL(fileURLWithPath: folder.servicePath))
        #expect(throws: EnrollmentError(.folder, "")) { try folder.service() }
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
        let before = client.connector.context
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
        #expect(client.connector.context !== before)
        let other = try DeviceCredential(pem: Array(try await trust.device("bell").pem.utf8))
        #expect(throws: DeviceError(.badIdentity, "")) { try client.replaceCredential(other) }
    }
}
