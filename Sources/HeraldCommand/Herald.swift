import ArgumentParser

/// The executable: what it can do, and how it ends.
///
/// It exits 0 on success, 64 on wrong usage (`EX_USAGE`), and 1 otherwise, after one line on standard error that says
/// what is wrong and how to mend it.
@main
struct Herald: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "herald",
        abstract: "A push notification service of your own, compatible with APNs.",
        discussion: """
            Example:
              herald serve --demo      serve on this machine, with a device that shows what it receives
            """,
        version: version,
        subcommands: [Serve.self, Init.self, Provider.self, Device.self, Agent.self, Send.self, Token.self]
    )

    static let version = "0.1.0"

    static func main() async {
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as CommandError {
            Terminal.complain("herald: \(error.message)")
            exit(withError: ExitCode.failure)
        } catch {
            exit(withError: error)
        }
    }
}
