import ArgumentParser
import Foundation
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService
@testable import HeraldTrust

@Suite struct ListeningAddressesTests {
    private let all = ListeningAddresses(
        api: 2197,
        binary: 2195,
        feedback: 2196,
        device: 5223,
        activation: 2191,
        console: 2190,
        pid: 1234,
        host: "127.0.0.1",
        consoleHost: "127.0.0.1"
    )

    @Test func `the lines are those of the manual`() {
        #expect(
            all.lines == [
                "provider API   https://127.0.0.1:2197",
                "binary         tls://127.0.0.1:2195",
                "feedback       tls://127.0.0.1:2196",
                "devices        mqtts://127.0.0.1:5223",
                "activation     https://127.0.0.1:2191",
                "console        http://127.0.0.1:2190",
            ]
        )
    }

    @Test func `a listener that is not open has no line`() {
        let listeners = ListeningAddresses(api: 1, device: 2, console: 3, pid: 4, host: "::", consoleHost: "::1")
        #expect(listeners.lines.last == "console        http://[::1]:3")
        #expect(listeners.lines.count == 3)
    }

    @Test func `the console's address says whether it speaks TLS`() throws {
        var listeners = all
        listeners.consoleTLS = true
        #expect(listeners.lines.last == "console        https://127.0.0.1:2190")
        #expect(listeners.consoleURL == "https://127.0.0.1:2190")
        let folder = DataFolder(path: "/srv/herald")
        #expect(ServiceVariables(listeners, folder: folder).lines.contains("CONSOLE_URL=https://localhost:2190"))
    }

    @Test(arguments: [
        ("fd00::1", "[fd00::1]"), ("::ffff:127.0.0.2", "[::ffff:127.0.0.2]"), ("127.0.0.2", "127.0.0.2"),
    ])
    func `hosts of the variables stand in URLs`(host: String, shown: String) {
        var listeners = all
        listeners.name = host
        let variables = ServiceVariables(listeners, folder: DataFolder(path: "/srv/herald"))
        let lines = variables.lines.map { $0.filter { $0 != "'" } }
        #expect(lines.contains("APNS_HOST=\(shown)") && lines.contains("MQTT_HOST=\(shown)"))
    }

    /// A certificate of Herald's own names every address that the service listens on.
    @Test(arguments: [
        ("127.0.0.1", "localhost"), ("::1", "localhost"), ("0.0.0.0", "localhost"), ("::", "localhost"),
        ("0::0", "localhost"),
        ("127.0.0.2", "127.0.0.2"), ("fe80::1%eth0", "fe80::1%eth0"), ("push.test", "push.test"),
        ("127.0.0.3", "localhost"),
    ])
    func `the name is one that the certificate has and that leads to the listener`(host: String, name: String) {
        let names = ["localhost", "127.0.0.1", "::1", "127.0.0.2", "fe80::1", "push.test"].compactMap { ServerName($0) }
        #expect(ListeningAddresses.name(of: host, in: Set(names)) == name)
    }

    @Test func `the name is the first of the operator's own certificate`() {
        let names = Set(["*.example.com", "push.example.com", "mqtt.example.com"].compactMap { ServerName($0) })
        #expect(ListeningAddresses.name(of: "0.0.0.0", in: names) == "mqtt.example.com")
        #expect(ListeningAddresses.name(of: "10.0.0.1", in: names) == "mqtt.example.com")
        #expect(ListeningAddresses.name(of: "0.0.0.0", in: []) == "127.0.0.1")
    }

    @Test func `a client finds the address and the name`() throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        var running = all
        (running.host, running.name) = ("127.0.0.2", "127.0.0.2")
        try running.write(to: folder)
        var peer = try PeerOptions.parse(["--data", temporary.path])
        let place = try peer.service(defaultPort: 2197, listener: \.api)
        #expect(place.service == HostPort(host: "127.0.0.2", port: 2197) && place.address == "127.0.0.2")
        // The sandbox is known by a name, which leads elsewhere.
        peer = try PeerOptions.parse(["--data", temporary.path, "--environment", "sandbox"])
        let sandbox = try peer.service(defaultPort: 2197, listener: \.api)
        #expect(sandbox.service == HostPort(host: "sandbox.localhost", port: 2197) && sandbox.address == "127.0.0.2")
        #expect(ServiceVariables(running, folder: folder).lines.contains("APNS_HOST=127.0.0.2"))
    }

    @Test func `the file comes and goes with the service`() throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        #expect(ListeningAddresses.read(from: folder) == nil)
        try all.write(to: folder)
        let text =
            #"{"activation":2191,"api":2197,"binary":2195,"console":2190,"console_host":"127.0.0.1","console_tls":false,"#
            + #""device":5223,"feedback":2196,"host":"127.0.0.1","name":"localhost","pid":1234}"#
        #expect(try temporary.text(of: "run/listeners.json") == text + "\n")
        #expect(ListeningAddresses.read(from: folder) == all)
        ListeningAddresses.remove(from: folder)
        #expect(ListeningAddresses.read(from: folder) == nil)
    }
}
