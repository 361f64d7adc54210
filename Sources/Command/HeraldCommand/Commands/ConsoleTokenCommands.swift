import ArgumentParser
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldService

/// `herald console token`.
struct ConsoleTokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Make a lasting token with which a tool uses the console.",
        discussion: """
            The command shows the token only now: the service keeps a hash. The tool sends it in the field \
            `authorization: Bearer TOKEN`. The service need not run.

            Example:
              herald console token --name grafana --role viewer --days 365
            """
    )

    @Option(help: ArgumentHelp("The name of the tool, in lists and in the audit.", valueName: "text"))
    var name: String

    @Option(help: ArgumentHelp("The rights: viewer, sender or admin.", valueName: "role"))
    var role = ConsoleRole.viewer

    @Option(help: ArgumentHelp("How long it is valid.", valueName: "days"))
    var days = 90

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard ConsoleTokens.isName(name) else {
            throw ValidationError("--name must have 1 to 64 bytes, without control characters.")
        }
        guard ConsoleTokens.days.contains(days) else {
            throw ValidationError("--days must be a number from 1 to \(ConsoleTokens.days.upperBound).")
        }
    }

    func run() async throws {
        let request = TokenRequest(name: name, role: role, days: days)
        let entry =
            switch try ConsoleTokenBook(of: data.folder()) {
            case .service(let client): try await client.ask(AdminAPI.makeToken, body: request)
            case .file(let access, _): try await access.issue(request)
            }
        if data.json { return try Terminal.sayJSON(entry) }
        Terminal.say("token    \(entry.token ?? "")")
        Terminal.say("id       \(entry.id)")
        Terminal.say("role     \(entry.role.rawValue)")
        Terminal.say("expires  \(entry.expires)")
    }
}

/// `herald console tokens`.
struct ConsoleTokenList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens",
        abstract: "List the tokens of tools.",
        discussion: """
            Example:
              herald console tokens
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let tokens = try await ConsoleTokenBook(of: data.folder()).tokens()
        if data.json { return try Terminal.sayJSON(tokens) }
        var table = TextTable(["ID", "NAME", "ROLE", "CREATED", "EXPIRES"])
        for token in tokens {
            table.add([token.id, token.name, token.role.rawValue, token.created, token.expires])
        }
        table.lines.forEach(Terminal.say)
    }
}

/// `herald console revoke`.
struct ConsoleRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a token of a tool.",
        discussion: """
            Sessions that were opened with it end too.

            Example:
              herald console revoke grafana
            """
    )

    @Argument(help: "The name or the identifier of a token, as `herald console tokens` shows it.")
    var token: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        let book = try ConsoleTokenBook(of: data.folder())
        let tokens = try await book.tokens()
        guard let found = tokens.first(where: { $0.id == token }) ?? tokens.first(where: { $0.name == token }) else {
            throw CommandError(
                .refused,
                "no token has this name or identifier: `herald console tokens` lists those that are valid"
            )
        }
        switch book {
        case .service(let client): _ = try await client.ask(AdminAPI.revokeToken, [Ask.id(found.id)])
        case .file(let access, _): try await access.withdraw(found.id)
        }
        if data.json { return try Terminal.sayJSON(found) }
        Terminal.say("revoked \(found.name)")
    }
}

/// The named tokens of the console: those of the running service, or the file if none runs.
private enum ConsoleTokenBook {
    case service(ControlClient)
    case file(ConsoleAccess, FolderLock)

    init(of folder: DataFolder) throws {
        switch try FolderLock.attempt(folder) {
        case .held: self = .service(ControlClient(folder: folder))
        case .taken(let lock):
            let file = ConsoleTokenFile(folder: folder)
            let access = ConsoleAccess(
                adminToken: "",
                tokens: try file.read(),
                clock: ServiceClock(),
                save: { try file.write($0) }
            )
            self = .file(access, lock)
        }
    }

    func tokens() async throws -> [TokenEntry] {
        switch self {
        case .service(let client): try await client.ask(AdminAPI.tokens).items
        case .file(let access, _): access.tokenEntries
        }
    }
}
