import ArgumentParser
import HeraldConsole
import HeraldModel
import HeraldService
import HeraldTrust

/// `herald app`: the names of apps that the running service knows, and the teams that own them.
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "List and forget the names of apps, and decide which team owns them.",
        discussion: """
            A service knows the name of every app that a device ever registered, and of
            every app that has a channel.

            Example:
              herald app list
              herald app forget com.example.chat
              herald app claim com.example.chat --team TEAM000001
            """,
        subcommands: [AppList.self, AppForget.self, AppClaim.self, AppRelease.self]
    )
}

/// `herald app list`.
struct AppList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the names of apps, the teams that own them, and who brought them.",
        discussion: """
            Topics that a team owns and that no app has yet have no environment.
            BY says why the team owns the topic: its credential names it, its use was the first
            to be accepted, or the operator claimed it.

            Example:
              herald app list --unused --json
            """
    )

    @Flag(help: "Only names that can be forgotten.")
    var unused = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let client = try ControlClient.ofService(in: data.folder())
        let heading = [
            "TOPIC", "ENVIRONMENT", "DEVICES", "CHANNELS", "OWNER", "SINCE", "BY", "CREATED", "BROUGHT BY",
        ]
        try await Terminal.sayList(heading: data.json ? nil : heading) { after in
            let page = try await client.page(AdminAPI.apps, after: after, [AdminAPI.unused(unused)])
            return (page.items, page.next)
        } row: { (app: AppEntry) in
            let origin = app.device.map { "device \($0)" } ?? app.team.map { "team \($0)" } ?? "-"
            return [
                app.topic.name, app.environment?.rawValue ?? "-", "\(app.devices)", "\(app.channels)", app.owner ?? "-",
                app.ownerSince ?? "-", app.ownerOrigin ?? "-", app.created ?? "-", origin,
            ]
        }
    }
}

/// `herald app forget`.
struct AppForget: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Forget names of apps that nothing uses.",
        discussion: """
            An app that is registered on a device, or has a channel, is not forgotten. Tokens
            of devices that removed the app get BadDeviceToken instead of Unregistered
            afterwards, and the journal shows the app by its number.

            Example:
              herald app forget com.example.chat
              herald app forget com.example.chat --environment sandbox
            """
    )

    @Argument(help: "The topics, as `herald app list` shows them.")
    var topics: [String]

    @Option(help: ArgumentHelp("Where: production, sandbox or both.", valueName: "environment"))
    var environment = "both"

    @OptionGroup var data: DataOptions

    func validate() throws {
        _ = try CredentialOptions.environments(environment)
        for topic in topics where Topic(topic) == nil {
            throw ValidationError(topic, isNot: "a topic, like com.example.chat")
        }
    }

    func run() async throws {
        let client = try ControlClient.ofService(in: data.folder())
        let place = environment == "both" ? [] : [Ask.environment(environment)]
        var forgotten: [AppEntry] = []
        var failure: (any Error)?
        for topic in topics where failure == nil {
            do {
                forgotten += try await client.ask(AdminAPI.forgetApp, [Ask.topic(topic)] + place)
            } catch {
                failure = error
            }
        }
        if data.json, failure == nil || !forgotten.isEmpty { try Terminal.sayJSON(forgotten) }
        for app in forgotten where !data.json {
            Terminal.say("app \(app.topic) is forgotten in \(app.environment?.rawValue ?? "-")")
        }
        if let failure { throw failure }
    }
}

/// `herald app claim`.
struct AppClaim: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "claim",
        abstract: "Make a team the owner of topics.",
        discussion: """
            Keys of the whole team may send only to topics that no other team owns. A team
            also owns a topic once its credential names it, or once its push to a live
            token of it was the first to be accepted.

            A topic stands for all its forms with a suffix, in both environments.

            Example:
              herald app claim com.example.chat --team TEAM000001
            """
    )

    @Argument(help: "The topics.", transform: CredentialOptions.topic)
    var topics: [Topic]

    @Option(help: ArgumentHelp("The team.", valueName: "id"), transform: CredentialOptions.team)
    var team: String

    @Flag(help: "Take topics from the teams that own them.")
    var force = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let claims = try await TrustChange.make(in: try data.folder()) { trust, now in
            try await trust.topics.claim(topics, for: team, takesOver: force, now: now)
        }
        if data.json { return try Terminal.sayJSON(claims) }
        for claim in claims { Terminal.say("\(claim.topic) belongs to team \(claim.team)") }
    }
}

/// `herald app release`.
struct AppRelease: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "End the ownership of topics.",
        discussion: """
            The next team that uses a released topic owns it.

            Example:
              herald app release com.example.chat
            """
    )

    @Argument(help: "The topics.", transform: CredentialOptions.topic)
    var topics: [Topic]

    @OptionGroup var data: DataOptions

    func run() async throws {
        let released = try await TrustChange.make(in: try data.folder()) { trust, _ in
            try await trust.topics.release(topics)
        }
        if data.json { return try Terminal.sayJSON(released) }
        for topic in released { Terminal.say("\(topic) belongs to no team") }
    }
}
