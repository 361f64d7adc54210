import Foundation
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct TextTests {
    @Test(arguments: [
        ("push.example.com:2197", HostPort(host: "push.example.com", port: 2197)),
        ("127.0.0.1", HostPort(host: "127.0.0.1", port: 99)),
        ("[::1]:7", HostPort(host: "::1", port: 7)),
        ("[::1]", HostPort(host: "::1", port: 99)),
    ])
    func `a host and a port are read`(text: String, expected: HostPort) {
        #expect(HostPort(text, defaultPort: 99) == expected)
    }

    @Test(arguments: [
        "", ":1", "a:", "a:0", "a:65536", "a:1:2", "::1", "a b:1", "[a]:1", "[::1", "[::1]x", "https://a:1", "a:+1",
        "a:١",
    ])
    func `what is not a host and port is refused`(text: String) {
        #expect(HostPort(text, defaultPort: 99) == nil)
    }

    @Test func `an address of version 6 is written in brackets`() {
        #expect(HostPort(host: "::1", port: 1).description == "[::1]:1")
    }

    @Test(arguments: [
        ("0", Duration.zero), ("90", .seconds(90)), ("90s", .seconds(90)), ("250ms", .milliseconds(250)),
        ("30m", .seconds(1800)), ("1h", .seconds(3600)), ("7d", .seconds(604_800)),
        ("1w", .seconds(604_800)),
    ])
    func `a span of time is read`(text: String, expected: Duration) {
        #expect(DurationText.read(text) == expected)
    }

    @Test(arguments: ["", "s", "-1s", "1.5h", "1y", "1 h", "99999999999999", "40000d", "1h30m"])
    func `what is not a span of time is refused`(text: String) {
        #expect(DurationText.read(text) == nil)
    }

    @Test(arguments: [
        ("system", ClockSetting.system), ("adjustable", .shifted(by: .zero)),
        ("+1h", .shifted(by: .seconds(3600))),
        ("-7d", .shifted(by: .seconds(-604_800))), ("1700000000", .beginning(at: WallTime(seconds: 1_700_000_000))),
        ("2023-11-14T22:13:20Z", .beginning(at: WallTime(seconds: 1_700_000_000))),
        ("2023-11-14T23:13:20+01:00", .beginning(at: WallTime(seconds: 1_700_000_000))),
    ])
    func `a clock is read`(text: String, expected: ClockSetting) {
        #expect(ClockSetting(text) == expected)
    }

    @Test(arguments: ["7", "0", "", "7 d", "1y", "d"])
    func `a duration for what cannot be undone needs a unit`(text: String) {
        #expect(DurationText.readWithUnit(text) == nil && DurationText.readWithUnit("7d") == .seconds(604_800))
    }

    @Test(arguments: ["", "+", "-", "+1y", "soon", "2023-11-14", "2023-02-30T00:00:00Z", "2023-11-14T22:13:20+1"])
    func `what is not a clock is refused`(text: String) {
        #expect(ClockSetting(text) == nil)
    }

    @Test func `a clock that begins at a moment runs on from there and can be moved`() {
        let clock = ClockSetting.beginning(at: WallTime(seconds: 100)).makeClock()
        #expect(clock.advance(by: .seconds(1000)))
        #expect(clock.now() >= WallTime(seconds: 1100) && clock.now() < WallTime(seconds: 1200))
    }

    @Test func `the system's clock is not moved`() {
        #expect(!ClockSetting.system.makeClock().advance(by: .seconds(1)))
    }

    @Test(arguments: ["\u{301}", "\u{200D}", "\u{E31}"])
    func `a sign that something combines with is that sign`(mark: String) {
        func isSame(_ text: String, _ expected: String) -> Bool { text.utf8.elementsEqual(expected.utf8) }
        #expect(isSame(ShellWord.quoted("it'\(mark)s"), "'it'\\''\(mark)s'"))
        #expect(isSame(SafeFile.folder(of: "/a/b/\(mark)c"), "/a/b"))
        #expect(BackupLayout.isPart("trust/\(mark)"))
        #expect(!BackupLayout.isPart("trust/../\(mark)c"))
        #expect(DiskCheck.kind(of: "/a/\(mark)c", mounts: "x / ext4\ny /a tmpfs\n") == "tmpfs")
    }

    @Test func `a name in a table reorders and moves nothing, and the columns stay`() {
        var table = TextTable(["NAME", "STATE"])
        for name in ["a\u{202E}b", "می\u{200C}خواهم", "c\u{1B}[2J\n"] { table.add([name, "live"]) }
        #expect(
            table.lines == [
                "NAME          STATE", "a\\u{202e}b    live", "می\u{200C}خواهم       live", "c\\u{1b}[2J\\n  live",
            ]
        )
    }

    @Test func `paths are compared byte by byte`() throws {
        let folder = try TemporaryFolder()
        for name in ["a", "a/\u{301}b", "\u{E9}", "e\u{301}"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)",
                withIntermediateDirectories: true
            )
        }
        func path(_ name: String) -> ResolvedPath { ResolvedPath("\(folder.path)/\(name)") }
        #expect(path("a").contains(path("a/\u{301}b")) && !path("a").contains(path("ab")))
        #expect(path("\u{E9}") != path("e\u{301}") && !path("\u{E9}").contains(path("e\u{301}")))
    }
}
