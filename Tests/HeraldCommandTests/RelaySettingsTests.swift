import ArgumentParser
import Foundation
import HeraldModel
import HeraldRelay
import Testing

@testable import HeraldCommand

@Suite struct RelaySettingsTests {
    @Test func `the file in the manual holds every key of the relay`() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/relay.yaml"), encoding: .utf8)
        _ = try SettingsFile.values(text, path: "relay.yaml")
        for key in SettingKey.allCases where key.isOfRelay {
            #expect(text.contains("\n\(key.rawValue):"), "\(key)")
        }
    }

    private func settings(_ file: String, _ arguments: [String] = []) throws -> RelaySettings {
        let folder = try TemporaryFolder()
        let certificate = try folder.write("PEM", to: "provider.pem")
        let path = try folder.write(file.replacing("CERTIFICATE", with: certificate), to: "relay.yaml")
        let options = try RelayRunOptions.parse(["--config", path] + arguments)
        return try RelaySettings(options, environment: [:])
    }

    @Test func `apps are read from the file, and Apple is the service unless one is named`() throws {
        let settings = try settings(
            """
            database: sqlite:///q.db
            environment: sandbox
            lease: 5s
            apps:
              - topics: [com.example.a, com.example.b]
                certificate: CERTIFICATE
              - name: ours
                topic: com.example.c
                environment: production
                certificate: CERTIFICATE
                service: localhost
              - name: old
                topic: com.example.c
                certificate: CERTIFICATE
                service: localhost
                interface: binary
            """
        )
        #expect(settings.relay.lease == .seconds(5) && settings.apps.count == 3)
        #expect(settings.apps[2].interface == .binary && settings.apps[2].service.port == 2195)
        #expect(settings.apps[0].name == "apple" && settings.apps[0].service.host == "api.sandbox.push.apple.com")
        #expect(settings.apps[0].topics == ["com.example.a", "com.example.b"])
        #expect(settings.apps[1].name == "ours" && settings.apps[1].environment == .production)
        #expect(settings.apps[1].service == RelayApp.Place(host: "localhost", port: 2197))
    }

    @Test(arguments: [
        ("apps: nothing", "must be a list of mappings"),
        ("apps: [{topic: a b, certificate: CERTIFICATE}]", "is not a topic"),
        ("apps: [{certificat: x}]", "unknown key `certificat`"), ("apps: [{topic: com.example.a}]", "give either"),
        ("apps: [{certificate: CERTIFICATE, console: x, console-token: CERTIFICATE}]", "must be an address"),
        ("apps: [{certificate: CERTIFICATE, feedback: x}]", "names no topic"), ("lease: 1ms", "must be a span of time"),
        ("apps: [{certificate: CERTIFICATE, interface: http3}]", "must be http2 or binary"),
        (
            "apps: [{certificate: CERTIFICATE, interface: binary, topic: com.example.a}]",
            "Apple has no binary interface"
        ),
        ("apps: [{certificate: CERTIFICATE, interface: binary, service: localhost}]", "give that one in `topic`"),
        ("apps: [{certificate: CERTIFICATE, service: 'a:b'}]", "host and a port"), ("apps: [5]", "is a mapping"),
    ])
    func `what cannot be is told in words`(_ line: String, _ words: String) throws {
        do {
            _ = try settings("database: sqlite:///q.db\n\(line)\n")
            Issue.record("taken")
        } catch {
            #expect("\(error)".contains(words), "\(error)")
        }
    }
}
