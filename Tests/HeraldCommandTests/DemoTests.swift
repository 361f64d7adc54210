import Foundation
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct DemoTests {
    @Test func `what the demo plays with is made once`() async throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        let now = ServiceClock().now()
        let trust = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: now)
        for _ in 0..<2 { _ = try await Demo(folder, trust: trust, now: now) }
        #expect(try await trust.providers.all().map(\.kind.rawValue).sorted() == ["certificate", "key"])
        #expect(try await trust.devices.all().count == 1)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.demoPath) {
            #expect(try temporary.mode(of: "demo/\(name)") == 0o600)
        }
    }

    @Test func `what an interrupted start left out is made`() async throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        let now = ServiceClock().now()
        let trust = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: now)
        _ = try await Demo(folder, trust: trust, now: now)
        try FileManager.default.removeItem(atPath: DemoFolder(folder).devicePath)
        _ = try await Demo(folder, trust: trust, now: now)
        #expect(try await trust.devices.all().count == 2)
        #expect(try await trust.providers.all().count == 2)
    }

    private func curl(host: String = "127.0.0.1", authority: String = "/data/ca.pem") -> String {
        DemoCurl(authorityPath: authority, certificatePath: "/data/p.pem", host: host, port: 7)
            .line(DeviceToken(words: (0, 0, 0, 1)).hex)
    }

    @Test func `the line is a command of curl's`() {
        let zeroes = String(repeating: "0", count: 63)
        #expect(
            curl() == "curl -i --http2 --cacert /data/ca.pem --cert /data/p.pem -H 'apns-push-type: alert' "
                + #"-d '{"aps":{"alert":"Hello from curl"}}' https://localhost:7/3/device/\#(zeroes)1"#
        )
    }

    @Test(arguments: ["0.0.0.0", "::", "::1", "localhost"])
    func `what is reached as localhost needs no other word`(host: String) {
        #expect(!curl(host: host).contains("--resolve"))
    }

    @Test(arguments: [
        ("127.0.0.2", "--resolve localhost:7:127.0.0.2 "), ("fd00::1", "--resolve localhost:7:[fd00::1] "),
    ])
    func `another address is told to curl`(host: String, words: String) {
        #expect(curl(host: host).contains(words))
    }

    @Test func `a path is one word of the shell's`() {
        #expect(curl(authority: "/my data/it's.pem").contains(#"--cacert '/my data/it'\''s.pem' "#))
    }
}
