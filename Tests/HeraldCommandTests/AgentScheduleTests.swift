import ArgumentParser
import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// The payload of `herald agent schedule`, and the folder of a device that several commands use.
@Suite struct AgentScheduleTests {
    private func content(_ payload: String, _ options: [String]) throws -> JSON {
        let words = ["--app", "com.example.chat", "--after", "1m", "--payload", payload]
        return try AgentSchedule.parse(words + options).content()
    }

    @Test(arguments: [
        (
            #"{"alert":{"body":"B","loc-key":"K"}}"#, ["--title", "T"],
            #"{"alert":{"title":"T","body":"B","loc-key":"K"}}"#
        ),
        (#"{"alert":"B"}"#, ["--title", "T"], #"{"alert":{"title":"T","body":"B"}}"#),
        (#"{"alert":"B"}"#, ["--title", "T", "--alert", "A"], #"{"alert":{"title":"T","body":"A"}}"#),
        (#"{"alert":"B"}"#, ["--alert", "A"], #"{"alert":"A"}"#),
        (
            #"{"alert":{"title":"T","loc-key":"K","loc-args":["x"]},"badge":1}"#, ["--alert", "A"],
            #"{"alert":{"title":"T","body":"A"},"badge":1}"#
        ),
        (
            #"{"alert":{"title-loc-key":"K","title-loc-args":["x"],"body":"B"}}"#, ["--title", "T"],
            #"{"alert":{"title":"T","body":"B"}}"#
        ),
        ("{}", ["--alert", "A"], #"{"alert":"A"}"#),
        ("{}", ["--title", "T"], #"{"alert":{"title":"T"}}"#),
    ])
    func `options are merged with the payload's alert`(aps: String, options: [String], expected: String) throws {
        let wanted = try JSON.decode(JSON.self, from: Array(#"{"aps":\#(expected),"n":7}"#.utf8))
        #expect(try content(#"{"aps":\#(aps),"n":7}"#, options) == wanted)
    }

    @Test func `an aps or alert of another type is refused`() throws {
        for (payload, words) in [
            (#"{"aps":"hello"}"#, "aps is not an object"), (#"{"aps":null}"#, "aps is not an object"),
            (#"{"aps":{"alert":5}}"#, "alert is not a text or an object"),
            (#"{"aps":{},"x":\#(String(repeating: "[", count: 500))"#, "nested deeper than 500 arrays and objects"),
            (#"{"aps":{"#, "not a JSON object"), ("{]", "not a JSON object"),
        ] {
            let error = try #require(throws: (any Error).self) { try content(payload, ["--title", "T"]) }
            #expect("\(error)".contains(words))
        }
    }

    @Test(arguments: ["+3650000d", "+36526d", "1h", "soon"])
    func `a clock that cannot be set names its limit`(text: String) async throws {
        let command = try AgentSet.parse(["--clock", text])
        let error = await #expect(throws: (any Error).self) { try await command.run() }
        #expect("\(try #require(error))".contains("at most ten years (3652d) either way"))
    }

    @Test(arguments: ["id", "alert", "title", "sound", "category", "thread"])
    func `an option without its text is refused`(name: String) throws {
        let words = ["--app", "com.example.chat", "--after", "1m", "--badge", "1", "--\(name)", ""]
        let error = try #require(throws: (any Error).self) { try AgentSchedule.parse(words) }
        #expect(AgentSchedule.message(for: error) == "--\(name) is empty: give it a text, or leave it out.")
    }

    // MARK: - The folder

    @Test func `a command waits for a folder that another command uses`() async throws {
        let temporary = try TemporaryFolder()
        let holder = Mutex<DeviceAgent?>(try DeviceAgent.stopped(folder: temporary.path))
        var folder = AgentFolderPath(path: temporary.path)
        folder.wait.sleep = { _ in holder.withLock { $0 = nil } }
        #expect(try await folder.pending(of: nil).isEmpty)
        #expect(holder.withLock { $0 == nil })
    }

    @Test func `a command gives up after five seconds`() async throws {
        let temporary = try TemporaryFolder()
        let holder = try DeviceAgent.stopped(folder: temporary.path)
        let slept = Mutex(Duration.zero)
        var folder = AgentFolderPath(path: temporary.path)
        folder.wait.sleep = { pause in slept.withLock { $0 += pause } }
        let error = await #expect(throws: DeviceError.self) { try await folder.pending(of: nil) }
        #expect(error?.code == .folderInUse && error?.message.contains("another agent or command uses") == true)
        #expect(slept.withLock { $0 } == .seconds(5))
        withExtendedLifetime(holder) {}
    }
}
