import ArgumentParser
import Foundation
import HeraldConsole
import HeraldService

extension ConsoleRole: ExpressibleByArgument {}

/// `herald console`: a way into the console, and the tokens of tools.
struct ConsoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "console",
        abstract: "Sign in to the console, and manage the tokens of tools.",
        discussion: """
            Prints a link for the console of the running service. It works once, and for a minute.

            A viewer sees; a sender also sends, and reads payloads that were caught; an admin does everything.

            Example:
              herald console --open
              herald console token --name grafana --role viewer
            """,
        subcommands: [
            ConsoleLink.self, ConsoleTokenCommand.self, ConsoleTokenList.self, ConsoleRevoke.self,
            ConsoleDescription.self,
        ],
        defaultSubcommand: ConsoleLink.self
    )
}

/// `herald console link`.
struct ConsoleLink: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link",
        abstract: "Make a link that signs in once, within a minute.",
        discussion: """
            --open opens it in this machine's browser; for a moment the list of processes then shows it to other users \
            of this machine.

            Example:
              herald console link --role viewer --name Ada
            """
    )

    @Flag(help: "Open the link in this machine's browser.")
    var open = false

    @Option(help: ArgumentHelp("The rights: viewer, sender or admin.", valueName: "role"))
    var role = ConsoleRole.admin

    @Option(help: ArgumentHelp("The name in the audit. (default: this user's)", valueName: "text"))
    var name: String?

    @OptionGroup var data: DataOptions

    func run() async throws {
        let folder = try data.folder()
        let client = try ControlClient.ofService(in: folder)
        guard let console = ListeningAddresses.read(from: folder)?.consoleURL else {
            throw CommandError(
                .refused,
                "this service's console has no port: remove console-mode: off from its configuration, and restart it"
            )
        }
        let user = NSUserName()
        let request = LinkRequest(name: name ?? (user.isEmpty ? nil : user), role: role)
        let link = try await client.ask(AdminAPI.makeLink, body: request)
        let address = "\(console)/#login=\(link.code)"
        if data.json {
            try Terminal.sayJSON(LinkReport(url: address, name: link.name, role: link.role, expires: link.expires))
        } else {
            Terminal.say(address)
        }
        if open { try Self.open(address) }
    }

    private static func open(_ address: String) throws {
        #if os(macOS)
        let program = "open"
        #else
        let program = "xdg-open"
        #endif
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program, address]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        // `waitUntilExit` of Foundation may wait for ever on a thread that is not the main one.
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        do {
            try process.run()
        } catch {
            throw CommandError(.refused, "cannot run \(program): open the link above yourself")
        }
        ended.wait()
        guard process.terminationStatus == 0 else {
            throw CommandError(.refused, "\(program) found no browser: open the link above yourself")
        }
    }
}

/// A link as `--json` prints it.
private struct LinkReport: Encodable {
    let url: String
    let name: String
    let role: ConsoleRole
    let expires: String
}

/// `herald console description`.
struct ConsoleDescription: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "description",
        abstract: "Print the description of the admin API in OpenAPI 3.1.",
        discussion: """
            It is that of this binary; a running service shows its own at /openapi.yaml.

            Example:
              herald console description > herald.yaml
            """
    )

    func run() async throws {
        let text = try OpenAPI.yaml(of: AdminAPI.all)
        Terminal.sayExactly(String(text.dropLast()))
    }
}
