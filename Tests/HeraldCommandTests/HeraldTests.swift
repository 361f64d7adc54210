import ArgumentParser
import HeraldDevice
import HeraldIdentity
import HeraldRelay
import HeraldStores
import Testing

@testable import HeraldCommand
@testable import HeraldService

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
        // Only the file can hold what is not a text, number or list of texts.
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
            ["console", "frobnicate"],
            "'frobnicate' is not a command of 'herald console': its commands are link, token, tokens, revoke, description."
        ),
        (["inspect"], "did you mean 'herald token inspect'?"),
        (["relay", "help"], "did you mean 'herald help relay'?"),
        (["device", "add"], "did you mean 'herald device enroll' or 'herald device invite'?"),
        (["device", "delete", "x"], "did you mean 'herald device revoke' or 'herald device withdraw'?"),
    ])
    func `an unknown command is told with the nearest one, or all of them`(arguments: [String], words: String) {
        #expect(WrongWord(arguments)?.message.hasSuffix(words) == true)
    }

    @Test(arguments: [
        (["devices"], "herald device"), (["DEVICE"], "herald device"), (["start"], "herald serve"),
        (["push", "x"], "herald send"), (["logs"], "herald journal"), (["token", "key"], "herald token keys"),
        (["backups"], "herald backup"), (["cluster", "node"], "herald cluster nodes"),
        (["relay", "start"], "herald relay run"), (["agent", "start"], "herald agent run"),
        (["clock", "forward", "1h"], "herald clock advance"), (["drill", "begin"], "herald drill start"),
        (["drill", "refuse"], "herald drill start"), (["drill", "end"], "herald drill stop"),
        (["relay", "delete"], "herald relay purge"), (["agent", "uninstall", "x"], "herald agent remove"),
        (["agent", "add", "x"], "herald agent install"), (["console", "delete", "x"], "herald console revoke"),
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
        ("agent run --device x", ["identity"]), ("agent schedule --in 10m", ["after", "folder"]),
        ("send 00 --p8 x", ["key"]),
        ("agent schedule --time 5", ["after", "at"]), ("drill start refuse --time 5", ["for"]),
        ("device invite --time 5", ["valid"]), ("send 00 --ttl 5", ["expiration"]), ("status --timeout 5", ["wait"]),
        ("relay run --db x", ["database"]), ("--verbose serve", ["log-level"]), ("-v", ["version"]),
        ("relay purge --before 7d", ["older-than"]), ("relay purge --simulate", ["dry-run"]),
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
        ("send --device 00", "<token>"), ("send --token 00", "<token>"), ("clock advance --by 1h", "<time>"),
    ])
    func `an option for a value without a name is told so`(line: String, value: String) throws {
        let wrong = try #require(WrongWord(line.split(separator: " ").map(String.init)))
        #expect(wrong.message.hasSuffix(": did you mean '\(value)' without a name before it?"))
    }

    @Test(arguments: [
        ("serve --api-port -5", "serve --api-port=-5"),
        ("send 00 --badge -1 --alert x", "send 00 --badge=-1 --alert x"),
        ("clock advance -1h", "clock advance -- -1h"), ("clock advance -1h --data X", "clock advance --data X -- -1h"),
        ("relay revive --since -2h", "relay revive --since=-2h"), ("send -.5 -- x", "send -- -.5 x"),
        ("agent set --clock -1h", "agent set --clock=-1h"), ("console token --days -3", "console token --days=-3"),
        ("send 00 --alert -x", "send 00 --alert -x"), ("send - --badge 1", "send - --badge 1"),
        ("send 00 -- -1", "send 00 -- -1"), ("-5", "-- -5"),
    ])
    func `a negative value is the value of its option`(line: String, right: String) {
        let words = CommandArgument.withNegativeValues(line.split(separator: " ").map(String.init))
        #expect(words.joined(separator: " ") == right)
    }

    @Test(arguments: [
        ("help foo", "'foo' is not a command of 'herald'"), ("foo --help", "'foo' is not a command of 'herald'"),
        ("help relay foo", "'foo' is not a command of 'herald relay'"),
        ("relay foo --help", "'foo' is not a command of 'herald relay'"),
        ("help serve foo", "'foo' is not a command of 'herald serve', which has none"),
        ("help sevre", "did you mean 'herald serve'?"),
    ])
    func `help of what does not exist is told so`(line: String, message: String) {
        let wrong = WrongWord(line.split(separator: " ").map(String.init), asksForHelp: true)
        #expect(wrong?.message.contains(message) == true)
    }

    @Test(arguments: ["help", "help relay run", "relay --help", "--help serve", "serve --foo --help", "--version"])
    func `help of what exists is given`(line: String) {
        #expect(WrongWord(line.split(separator: " ").map(String.init), asksForHelp: true) == nil)
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
            (DeviceError(.dismissed, "x"), 77), (DeviceError(.badIdentity, "x"), 78),
            (CommandError(.file, "x"), 1), (CommandError(.folderInUse, "x"), 1),
            (CommandError(.refused, "x"), 1), (CommandError(.unreachable, "x"), 1), (DeviceError(.refused, "x"), 1),
            (TrustError(.unreadable, "x"), 1), (StoreError(.cannotWrite, "x"), 1),
            (StoreError(.syncFailed, "x"), 1), (RelayStoreError(.unavailable, "x"), 1), (CancellationError(), 1),
        ]
        for (error, status) in statuses {
            #expect(ExitStatus.of(error, from: service).rawValue == status, "\(error)")
            #expect(ExitStatus.of(error, from: Status.self) == .failure)
        }
    }
}
