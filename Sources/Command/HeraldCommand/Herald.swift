import ArgumentParser
import HeraldModel
import HeraldService

/// The command `herald`.
///
/// It exits 0 on success, 64 on wrong usage (`EX_USAGE`), and 1 otherwise, after one line on standard error that says
/// what is wrong and how to mend it. ``ExitStatus`` has those of services that no restart can mend.
@main
struct Herald: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "herald",
        abstract: "A push notification service of your own, compatible with APNs.",
        discussion: """
            Example:
              herald serve --demo      serve on this machine, with a device that shows what it receives
            """,
        version: Version.description,
        subcommands: [
            Serve.self, Status.self, Init.self, Provider.self, Device.self, AppCommand.self, Agent.self, Send.self,
            Feedback.self,
            Check.self,
            Journal.self, Backup.self, Restore.self, Doctor.self, ConsoleCommand.self, ClusterCommand.self,
            RelayCommand.self, Token.self,
            DrillCommand.self, ExamCommand.self,
            ClockCommand.self,
        ]
    )

    static func main() async {
        guard !CommandLine.arguments.isEmpty else {
            // Swift reads them from there. As a command without arguments it would print its help, and seem to succeed.
            Terminal.complain("herald: the arguments cannot be read, because /proc is not mounted: mount it")
            exit(withError: ExitCode.failure)
        }
        var asked: any ParsableCommand.Type = Self.self
        let arguments = CommandArgument.withNegativeValues(Array(CommandLine.arguments.dropFirst()))
        do {
            var command = try parseAsRoot(arguments)
            asked = type(of: command)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as ValidationError {
            // Found by the command at its work, from the file and the environment too: told with that command's usage.
            let usage = Self.usageString(for: asked)
            let name = usage.split(separator: " ").prefix { $0.first?.isLetter == true }.joined(separator: " ")
            explain(error.message, usage: usage, of: name)
        } catch {
            // A help text is an error of the parser, too.
            let code = exitCode(for: error)
            if code == .success || code == .validationFailure,
                let wrong = WrongWord(arguments, asksForHelp: code == .success)
            {
                explain(wrong.message, usage: wrong.usage, of: wrong.command)
            }
            guard isFailure(error) else { exit(withError: error) }
            Terminal.complain("herald: \(oneLine(error))")
            exit(withError: ExitStatus.of(error, from: asked))
        }
    }

    /// Ends as the parser does where it finds wrong usage.
    private static func explain(_ message: String, usage: String, of name: String) -> Never {
        let lines = "Error: \(message)\nUsage: \(usage)\n  See '\(name) --help' for more information."
        for line in lines.split(separator: "\n") { Terminal.complain(String(line)) }
        exit(withError: ExitCode.validationFailure)
    }

    /// Whether the command's work failed; the parser explains wrong usage and help.
    private static func isFailure(_ error: any Error) -> Bool {
        !(error is ExitCode) && exitCode(for: error) == .failure
    }

    /// Every error that is meant for operators describes itself in one line; what is not, is made one.
    private static func oneLine(_ error: any Error) -> String {
        LogText.escaped("\(error)", limit: 2048, spelling: .terminal)
    }
}
