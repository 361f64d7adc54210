import ArgumentParser
import Foundation
import HeraldModel
import HeraldRelay
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct RelaySettingsTests {
    @Test func `the file in the manual holds every key of the relay`() throws {
        let text = try Manual.text("relay.yaml")
        let settings = Settings(values: try SettingsFile.values(text, path: "relay.yaml", of: .relay))
        var service = RelayServiceConfiguration()
        for row in RelayServiceSettings.rows { try row.read(settings, &service) }
        for row in RelayServiceSettings.rows where row.key.name != "api-token" {
            #expect(!row.differs(service, RelayServiceConfiguration()), "\(row.key.name)")
        }
        for key in RelayServiceSettings.rows.map(\.key) + SettingKey.ofRelay where !key.name.hasPrefix("log-") {
            #expect(text.contains("\n\(key.name):"), "\(key.name)")
        }
    }

    private func settings(
        _ file: String,
        _ arguments: [String] = [],
        mode: mode_t = 0o600
    ) throws -> RelaySettings {
        let folder = try TemporaryFolder()
        let certificate = try folder.write("PEM", to: "provider.pem")
        chmod(certificate, mode)
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
        #expect(settings.service.relay.lease == .seconds(5) && settings.apps.count == 3)
        #expect(settings.apps[2].interface == .binary && settings.apps[2].service.port == 2195)
        #expect(settings.apps[0].name == "apple" && settings.apps[0].service.host == "api.sandbox.push.apple.com")
        #expect(settings.apps[0].topics == ["com.example.a", "com.example.b"])
        #expect(settings.apps[1].name == "ours" && settings.apps[1].environment == .production)
        #expect(settings.apps[1].service == HostPort(host: "localhost", port: 2197))
    }

    @Test func `in the sandbox every host of a service is asked for by its name there`() throws {
        let settings = try settings(
            """
            database: sqlite:///q.db
            apps:
              - {topic: com.example.a, certificate: CERTIFICATE, service: push.example.com}
              - name: development
                topic: com.example.a
                environment: sandbox
                certificate: CERTIFICATE
                service: push.example.com:2195
                interface: binary
                feedback: push.example.com
                console: http://127.0.0.1:2190
                console-token: CERTIFICATE
            """,
            ["--environment", "production"]
        )
        #expect(settings.apps[0].service.host == "push.example.com")
        #expect(settings.apps[1].service == HostPort(host: "sandbox.push.example.com", port: 2195))
        #expect(settings.apps[1].feedback == HostPort(host: "sandbox.push.example.com", port: 2196))
        // The console has both environments.
        #expect(settings.apps[1].journal?.console == "http://127.0.0.1:2190")
    }

    @Test(arguments: [
        (
            "environment: sandbox\napps: [{certificate: CERTIFICATE, topic: com.example.a, service: '127.0.0.1:2197'}]",
            "needs a host name in `service`, and 127.0.0.1 is an address"
        ),
        (
            "apps: [{certificate: CERTIFICATE, topic: com.example.a, environment: sandbox, feedback: '[::1]:2196'}]",
            "needs a host name in `feedback`, and ::1 is an address"
        ),
        ("apps: [{certificate: CERTIFICATE, environment: development}]", "must be production or sandbox"),
        ("apps: nothing", "must be a list of mappings"),
        ("apps: [{topic: a b, certificate: CERTIFICATE}]", "is not a topic"),
        ("apps: [{certificat: x}]", "unknown key `certificat`"), ("apps: [{topic: com.example.a}]", "give either"),
        ("apps: [{certificate: CERTIFICATE, console: x, console-token: CERTIFICATE}]", "must be an address"),
        (
            "apps: [{certificate: CERTIFICATE, console: 'http://a:1/?token=x', console-token: CERTIFICATE}]",
            "without a token: that is in the file of `console-token`"
        ),
        ("apps: [{certificate: CERTIFICATE, feedback: x}]", "names no topic"),
        ("api-port: 1", "relay.yaml:2: unknown key `api-port`: it is for a service's file"),
        ("keep-sent-days: 30d", "without a unit: write for example `keep-sent-days: 30`"),
        ("retry-for: 24", "retry-for cannot be \"24\": write a time from 1s to 30d, with its unit, like 1d"),
        ("table-prefix: Herald-", "`table-prefix` must have at most 32 lower-case letters"),
        ("lease: 1ms", "lease cannot be \"1ms\": write a time from 2s to 1h"),
        ("apps: [{certificate: CERTIFICATE, interface: http3}]", "must be http2 or binary"),
        (
            "apps: [{certificate: CERTIFICATE, interface: binary, topic: com.example.a}]",
            "Apple has shut its binary interface down"
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

    @Test(arguments: [(0o644, false), (0o620, false), (0o602, false), (0o640, true), (0o400, true)])
    func `a credential that others may read is refused`(mode: mode_t, isTaken: Bool) {
        let file = "database: sqlite:///q.db\napps: [{certificate: CERTIFICATE}]\n"
        do {
            _ = try settings(file, mode: mode)
            #expect(isTaken)
        } catch {
            let words = "is open to others (mode 0\(String(mode, radix: 8))): run `chmod 600 "
            #expect(!isTaken && "\(error)".contains(words))
        }
    }
}
