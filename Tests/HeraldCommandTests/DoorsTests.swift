import Foundation
import Testing

@testable import HeraldCommand

@Suite struct DoorsTests {
    private let all = Doors(
        api: 2197,
        binary: 2195,
        feedback: 2196,
        device: 5223,
        activation: 2191,
        console: 2190,
        pid: 1234
    )

    @Test func `the file holds all doors in their order`() {
        let text =
            #"{"api":2197,"binary":2195,"feedback":2196,"device":5223,"activation":2191,"console":2190,"pid":1234}"#
        #expect(all.json == text)
    }

    @Test func `the lines are those of the manual`() {
        #expect(
            all.lines(host: "127.0.0.1", consoleHost: "127.0.0.1") == [
                "provider API   https://127.0.0.1:2197",
                "binary         tls://127.0.0.1:2195",
                "feedback       tls://127.0.0.1:2196",
                "devices        mqtts://127.0.0.1:5223",
                "activation     https://127.0.0.1:2191",
                "console        http://127.0.0.1:2190",
            ]
        )
    }

    @Test func `a door that is not open is in neither`() {
        let doors = Doors(api: 1, device: 2, console: 3, pid: 4)
        #expect(doors.json == #"{"api":1,"device":2,"console":3,"pid":4}"#)
        #expect(doors.lines(host: "::", consoleHost: "::1").last == "console        http://[::1]:3")
        #expect(doors.lines(host: "::", consoleHost: "::1").count == 3)
    }

    @Test func `the file comes and goes with the service`() throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        #expect(Doors.read(from: folder) == nil)
        try all.write(to: folder)
        #expect(Doors.read(from: folder) == all)
        Doors.remove(from: folder)
        #expect(Doors.read(from: folder) == nil)
    }
}
