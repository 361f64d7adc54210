import ArgumentParser
import HeraldRelay
import HeraldStores
import HeraldTrust
import Testing

@testable import HeraldCommand

@Suite struct HeraldTests {
    /// Every command, with the words that call it.
    static let commands: [(String, any ParsableCommand.Type)] = {
        func below(_ words: String, _ command: any ParsableCommand.Type) -> [(String, any ParsableCommand.Type)] {
            [(words, command)]
                + command.configuration.subcommands.flatMap { below("\(words) \(name(of: $0))", $0) }
        }
        return below("herald", Herald.self)
    }()

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    @Test func `every command has a help text with an example`() {
        for (words, command) in Self.commands {
            let help = Herald.helpMessage(for: command, columns: 400)
            #expect(help.contains("USAGE: \(words)"), "\(words)")
            let example = help.split(separator: "Example:\n").last ?? ""
            #expect(help.contains("Example:\n") && example.contains("  herald "), "\(words)")
            #expect(help.contains("OVERVIEW: "), "\(words)")
        }
    }

    @Test(arguments: ["serve", "init", "provider", "device", "agent", "send", "check", "journal", "token"])
    func `every command of the manual is there`(name: String) {
        #expect(Self.commands.contains { $0.0 == "herald \(name)" })
    }

    @Test(arguments: [["--nonsense"], ["nonsense"], ["serve", "--api-port", "x"], ["send"]])
    func `wrong usage exits 64`(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try Herald.parseAsRoot(arguments) }
        #expect(error.map { Herald.exitCode(for: $0) } == .validationFailure)
    }

    @Test(arguments: SettingKey.all)
    func `every key is an option of a command that is for it`(key: SettingKey) {
        // Only the file can hold what is no text, number or list of texts.
        guard key.shape != .blocks else { return }
        let asking = Self.commands.filter { words, _ in
            if SettingKey.ofClients.contains(key) { return words.hasPrefix("herald agent") || words == "herald send" }
            return words == "herald relay run" || words == "herald serve"
        }
        #expect(
            asking.contains { Herald.helpMessage(for: $0.1, columns: 400).contains("  --\(key.name)") },
            "\(key.name)"
        )
    }

    @Test(arguments: [
        (["sevre"], "'sevre' is not a command of 'herald': did you mean 'herald serve'?"),
        (["sevre", "--demo"], "did you mean 'herald serve'?"),
        (["relay", "staus"], "'staus' is not a command of 'herald relay': did you mean 'herald relay status'?"),
        (
            ["device", "add"],
            "'add' is not a command of 'herald device': its commands are enroll, invite, invitations, withdraw, list, label, disconnect, revoke."
        ),
    ])
    func `an unknown command is told with the nearest one, or all of them`(arguments: [String], words: String) {
        #expect(WrongWord(arguments)?.message.hasSuffix(words) == true)
    }

    @Test(arguments: [
        (["devices"], "herald device"), (["DEVICE"], "herald device"), (["start"], "herald serve"),
        (["push", "x"], "herald send"), (["logs"], "herald journal"), (["token", "key"], "herald token keys"),
        (["backups"], "herald backup"), (["cluster", "node"], "herald cluster nodes"),
    ])
    func `a command is found by its meaning, whatever its number and case`(arguments: [String], meant: String) {
        #expect(WrongWord(arguments)?.message.hasSuffix("did you mean '\(meant)'?") == true)
    }

    @Test(arguments: [
        (
            "serve --port 1",
            ["api-port", "binary-port", "feedback-port", "device-port", "activation-port", "console-port"]
        ),
        ("send 00 --cert x", ["certificate"]), ("feedback --cert x", ["certificate"]),
        ("send 00 --topics x", ["topic"]),
        ("send 00 --bundle-id x", ["topic"]), ("send 00 --collapseId=x", ["collapse-id"]),
        ("serve --API_PORT 1", ["api-port"]),
        ("serve --dat x", ["data"]), ("serve --data-dir x", ["data"]), ("status --folder x", ["data"]),
        ("send 00 --ca-file x", ["ca"]), ("send 00 -topic x", ["topic"]),
        ("drill start refuse --reasons x", ["reason"]),
        ("console --roles viewer", ["role"]), ("send 00 --sandbox", ["environment"]), ("serve --bind ::1", ["host"]),
    ])
    func `an unknown option is told with those of its meaning`(line: String, meant: [String]) throws {
        let wrong = try #require(WrongWord(line.split(separator: " ").map(String.init)))
        let names = meant.map { "'--\($0)'" }.joined(separator: " or ")
        #expect(wrong.message.hasSuffix(": did you mean \(names)?"))
        #expect(wrong.usage.contains(wrong.command))
    }

    @Test(arguments: ["serve --colour red", "provider certificate --cert x", "--sevre"])
    func `an unknown option without a likely meaning is only named`(line: String) {
        #expect(WrongWord(line.split(separator: " ").map(String.init))?.message.contains("did you mean") == false)
    }

    @Test(arguments: [
        ("clock --data X advance 1h", "herald clock advance --data X 1h"),
        ("--data X serve", "herald serve --data X"),
        ("device --json list --data X", "herald device list --json --data X"),
        ("console --data X token --name a", "herald console token --data X --name a"),
    ])
    func `options in front of a command are put behind it`(line: String, right: String) throws {
        let wrong = try #require(WrongWord(line.split(separator: " ").map(String.init)))
        #expect(wrong.message.hasSuffix("stand behind it: \(right)"))
    }

    @Test(arguments: [
        [], ["serve", "sevre"], ["relay"], ["relay", "run", "x"], ["clock", "advance", "-1h"], ["console", "--open"],
        ["serve", "--", "--port"], ["send", "-"],
    ])
    func `nothing is made up where no word is wrong`(arguments: [String]) {
        #expect(WrongWord(arguments) == nil)
    }

    @Test(arguments: [Serve.self, RelayRun.self, AgentRun.self] as [any ParsableCommand.Type])
    func `a service that no restart can mend has a status of its own`(service: any ParsableCommand.Type) {
        let statuses: [(any Error, Int32)] = [
            (CommandError(.configuration, "x"), 78), (CommandError(.folder, "x"), 78),
            (CommandError(.unusableFile, "x"), 78), (TrustError(.exposed, "x"), 78),
            (StoreError(.newerVersion, "x"), 78), (RelayStoreError(.unusable, "x"), 78),
            (CommandError(.dismissed, "x"), 77),
            (CommandError(.file, "x"), 1), (CommandError(.folderInUse, "x"), 1), (CommandError(.port, "x"), 1),
            (CommandError(.refused, "x"), 1), (CommandError(.unreachable, "x"), 1),
            (TrustError(.unreadable, "x"), 1), (StoreError(.cannotWrite, "x"), 1),
            (StoreError(.syncFailed, "x"), 1), (RelayStoreError(.unavailable, "x"), 1), (CancellationError(), 1),
        ]
        for (error, status) in statuses {
            #expect(ExitStatus.of(error, from: service).rawValue == status, "\(error)")
            #expect(ExitStatus.of(error, from: Status.self) == .failure)
        }
    }
}
