import ArgumentParser
import Foundation
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// The manual's files.
enum Manual {
    private static func url(_ name: String) -> URL {
        URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("docs/" + name)
    }

    static func text(_ name: String) throws -> String {
        try String(contentsOf: url(name), encoding: .utf8)
    }

    /// Compares a file with what the settings make of it; with `UPDATE_MANUAL` in the environment, writes it.
    static func check(_ name: String, _ expected: String) throws {
        if ProcessInfo.processInfo.environment["UPDATE_MANUAL"] != nil {
            try expected.write(to: url(name), atomically: true, encoding: .utf8)
        }
        #expect(try text(name) == expected, "run: UPDATE_MANUAL=1 swift test --filter ManualTests")
    }
}

/// The parts of the manual that follow from the table of settings.
@Suite struct ManualTests {
    private static let heading = """
        # The configuration of `herald serve --config herald.yaml`: every key with its default.
        #
        # A key is also an option (`--api-port`) and an environment variable (HERALD_API_PORT), which does not count if it is
        # empty. The command line wins over the environment, the environment over this file. An unknown key stops the start. A
        # setting marked with * takes effect on SIGHUP, every other one at the next start. The commands init, provider, device,
        # token, app, journal, drill, clock and status also read the key `data`.

        """

    private func block<Group: SettingGroup>(_ group: Group.Type) -> String where Group.Target == ServerConfiguration {
        let rows = group.rows.map { row in
            let allowed = row.allowed.isEmpty ? "" : " (\(row.allowed))"
            let words = (row.isLive ? "* " : "") + row.help + allowed
            return Self.wrapped(words).map { "# \($0)\n" }.joined()
                + "\(row.key.name): \(row.text(ServerConfiguration()))\n"
        }
        return "\n# ---- \(group.title) ----\n\n" + rows.joined(separator: "\n")
    }

    private static func wrapped(_ text: String) -> [String] {
        var lines = [""]
        for word in text.split(separator: " ") {
            let line = lines.removeLast()
            if line.isEmpty {
                lines.append(String(word))
            } else if line.count + word.count < 117 {
                lines.append("\(line) \(word)")
            } else {
                lines += [line, String(word)]
            }
        }
        return lines
    }

    @Test func `herald.yaml holds every setting with its help and its default`() throws {
        let blocks = [
            block(ServerSettings.Basics.self), block(ServerSettings.Listeners.self), block(ServerSettings.Storage.self),
            block(ClusterSettings.self), block(ServerSettings.Limits.self), block(ServerSettings.Trust.self),
            block(ServerSettings.Testing.self),
            block(ServerSettings.Logs.self),
        ]
        try Manual.check("herald.yaml", Self.heading + blocks.joined())
        let folder = try TemporaryFolder()
        let path = try folder.write(try Manual.text("herald.yaml"), to: "herald.yaml")
        let read = try Serve.parse(["--config", path]).configuration(environment: [:])
        #expect(read.changes(to: ServerConfiguration()).isEmpty)
    }

    @Test func `running.md says which settings take effect while the service runs`() throws {
        let text = try Manual.text("operations/running.md")
        let head = "| on SIGHUP | at the next start |\n|---|---|\n"
        let parts = text.components(separatedBy: head)
        try #require(parts.count == 2)
        func names(_ isLive: Bool) -> String {
            ServerSettings.rows.filter { $0.isLive == isLive }.map { "`\($0.key.name)`" }.joined(separator: ", ")
        }
        let rest = parts[1].drop { $0 != "\n" }
        try Manual.check("operations/running.md", parts[0] + head + "| \(names(true)) | \(names(false)) |" + rest)
    }
}
