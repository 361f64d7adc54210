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
        #expect(MistypedCommand(arguments)?.message.hasSuffix(words) == true)
    }

    @Test(arguments: [[], ["serve", "sevre"], ["--sevre"], ["relay"], ["relay", "run", "x"]])
    func `no command is made up where none is mistyped`(arguments: [String]) {
        #expect(MistypedCommand(arguments) == nil)
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
