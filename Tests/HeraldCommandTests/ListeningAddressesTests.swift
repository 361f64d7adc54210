import Foundation
import Testing

@testable import HeraldCommand

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

    @Test func `the file comes and goes with the service`() throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        #expect(ListeningAddresses.read(from: folder) == nil)
        try all.write(to: folder)
        let text =
            #"{"activation":2191,"api":2197,"binary":2195,"console":2190,"console_host":"127.0.0.1","console_tls":false,"#
            + #""device":5223,"feedback":2196,"host":"127.0.0.1","pid":1234}"#
        #expect(try temporary.text(of: "run/listeners.json") == text + "\n")
        #expect(ListeningAddresses.read(from: folder) == all)
        ListeningAddresses.remove(from: folder)
        #expect(ListeningAddresses.read(from: folder) == nil)
    }
}
