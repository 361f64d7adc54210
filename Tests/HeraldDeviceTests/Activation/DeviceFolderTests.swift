import Foundation
import HeraldModel
import HeraldTestSupport
import SwiftASN1
import Testing
import X509

@testable import HeraldDevice
@testable import HeraldTrust

struct DeviceFolderTests {
    private let trust: TestTrust
    private let folder: DeviceFolder
    private let service = DeviceFolder.Service(
        host: "push.example.com",
        port: 5223,
        activation: "https://push.example.com:2191"
    )

    init() throws {
        trust = try TestTrust()
        folder = DeviceFolder(trust.path + "/deep/down/device/")
    }

    private func save(replaces: Bool = false) throws {
        let (_, pem) = try trust.device()
        try folder.save(identity: Array(pem.utf8), authority: Array(pem.utf8), service: service, replaces: replaces)
    }

    private func mode(_ path: String) throws -> Int? {
        (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test func `what is kept is its owner's alone, and is read again`() throws {
        #expect(!folder.isActivated)
        try save()
        #expect(folder.isActivated)
        #expect(try mode(folder.path) == 0o700)
        #expect(try mode(folder.identityPath) == 0o600)
        #expect(try folder.service() == service)
        #expect(try folder.credential().id == (try trust.folder.enrolledDevices().first?.id))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.sorted() == ["ca.pem", "identity.pem", "service.json"])
    }

    @Test func `service json has the names that people write`() throws {
        try save()
        let text = try String(contentsOfFile: folder.servicePath, encoding: .utf8)
        #expect(text.contains(#""host" : "push.example.com""#) && !text.contains("server_name"))
        try Data(#"{"host":"a","port":1,"server_name":"b","activation":"https://c"}"#.utf8)
            .write(to: URL(fileURLWithPath: folder.servicePath))
        #expect(try folder.service().serverName == "b")
        try Data("{}".utf8).write(to: URL(fileURLWithPath: folder.servicePath))
        #expect(throws: EnrollmentError(.folder, "")) { try folder.service() }
    }

    @Test func `an identity is never overwritten unless it was said`() throws {
        try save()
        let first = try folder.identity()
        #expect(throws: EnrollmentError(.folder, "")) { try save() }
        #expect(try folder.identity() == first)
        try save(replaces: true)
        #expect(try folder.identity() != first)
    }

    @Test func `what is open to others is not used, and the error says how to mend it`() throws {
        try save()
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

    init() throws {
        trust = try TestTrust()
    }

    private func issue(_ request: [UInt8], from trust: TestTrust, id: String = "lamp") throws -> [Certificate] {
        let issued = try trust.folder.enrollDevice(name: nil, id: DeviceID(id), request: request, now: trust.now)
        return [issued.certificate]
    }

    @Test func `a request is taken, and its certificate becomes an identity`() throws {
        let answer = try issue(try key.request(name: "lamp"), from: trust)
        let authorities = [trust.folder.root.certificate, trust.folder.deviceAuthority.certificate]
        let identity = try key.identity(from: answer, authorities: authorities, expected: nil)
        #expect(identity.credential.id.name == "lamp")
        let bundle = try PEMBundle(pem: identity.pem, path: "")
        #expect(bundle.certificates == [answer[0], trust.folder.deviceAuthority.certificate] && bundle.key != nil)
    }

    @Test func `a renewal asks for the names that the device has`() throws {
        let present = try issue(try DeviceKey().request(name: "lamp"), from: trust)[0]
        let request = try CertificateSigningRequest(derEncoded: try key.request(following: present))
        #expect(request.subject == present.subject)
        let extensions = try #require(try request.attributes.extensionRequest?.extensions)
        #expect(try extensions.subjectAlternativeNames == present.extensions.subjectAlternativeNames)
        #expect(request.publicKey != present.publicKey)
    }

    @Test func `an answer that is not ours to use is refused`() throws {
        let authorities = [trust.folder.deviceAuthority.certificate]
        let another = try issue(try DeviceKey().request(name: "lamp"), from: trust, id: "a")
        let ours = try issue(try key.request(name: "lamp"), from: trust, id: "b")
        let foreign = try issue(try key.request(name: "lamp"), from: try TestTrust())
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
    func `an address is read as people write it`(_ text: String, _ url: String) throws {
        #expect(try ServiceAddress(text).description == url)
    }

    @Test(arguments: [
        "", "http://a", "https://", "https://a:0", "https://a:70000", "https://u@a", "https://a/b", "https://a?b",
        "a b", "mqtts://a",
    ])
    func `what is no address is refused`(_ text: String) {
        #expect(throws: EnrollmentError(.badAddress, "")) { try ServiceAddress(text) }
    }
}

struct NextCredentialTests {
    @Test func `a client takes its device's next certificate, and no other device's`() throws {
        let trust = try TestTrust()
        let (device, pem) = try trust.device("lamp")
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
        let next = try trust.folder.renewDevice(
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
        let other = try DeviceCredential(pem: Array(try trust.device("bell").pem.utf8))
        #expect(throws: DeviceError(.badIdentity, "")) { try client.replaceCredential(other) }
    }
}
