import ArgumentParser
import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// `herald agent channel`: an app's subscriptions to broadcast channels.
struct AgentChannel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channel",
        abstract: "Subscribe apps of the device to broadcast channels.",
        discussion: """
            Example:
              herald agent channel subscribe --app com.example.chat dHN0LXNyY2gtY2hubA4PEA==
            """,
        subcommands: [Subscribe.self, Unsubscribe.self, List.self, Show.self]
    )

    /// The channel of a command.
    struct Options: ParsableArguments {
        @Option(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
        var app: String

        @Argument(help: ArgumentHelp("The channel, as providers write it: its apns-channel-id.", valueName: "channel"))
        var channel: String

        @OptionGroup var options: AgentFolderOptions

        func perform(_ action: (Topic, String) -> PhoneAction) async throws {
            try await options.existingFolder().perform(action(try AgentTopic.read(app), channel))
        }
    }

    struct Subscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Subscribe an app to a channel.",
            discussion: """
                The device stays subscribed until it is told otherwise, or the app is removed. `list` says whether the \
                service refuses it.

                Example:
                  herald agent channel subscribe --app com.example.chat dHN0LXNyY2gtY2hubA4PEA==
                """
        )

        @OptionGroup var channel: Options

        func run() async throws {
            try await channel.perform { .subscribe($0, channel: $1) }
        }
    }

    struct Unsubscribe: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End an app's subscription to a channel.",
            discussion: """
                Example:
                  herald agent channel unsubscribe --app com.example.chat dHN0LXNyY2gtY2hubA4PEA==
                """
        )

        @OptionGroup var channel: Options

        func run() async throws {
            try await channel.perform { .unsubscribe($0, channel: $1) }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the channels to which apps are subscribed, with the newest broadcast of each.",
            discussion: """
                Example:
                  herald agent channel list --app com.example.chat --json
                """
        )

        @Option(help: ArgumentHelp("Only those of this app.", valueName: "topic"))
        var app: String?

        @OptionGroup var options: AgentFolderOptions

        @Flag(help: "Print JSON: a list of channels for each app.")
        var json = false

        func run() async throws {
            let topic = try app.map { try AgentTopic.read($0) }
            let apps = try await options.existingFolder().snapshot().apps.filter { topic == nil || $0.topic == topic }
            if json {
                var members: JSON.Object = [:]
                for app in apps { members[app.topic.name] = try JSON(encoding: app.channels) }
                return Terminal.sayJSON(JSON.object(members))
            }
            for app in apps {
                for channel in app.channels { Terminal.say("\(app.topic): \(AgentReport.line(channel))") }
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print what the newest broadcast of a channel showed.",
            discussion: """
                Example:
                  herald agent channel show --app com.example.chat dHN0LXNyY2gtY2hubA4PEA== --json
                """
        )

        @OptionGroup var channel: Options

        @Flag(help: "Print the display record as JSON.")
        var json = false

        func run() async throws {
            let topic = try AgentTopic.read(channel.app)
            let folder = try channel.options.existingFolder()
            let apps = try await folder.snapshot().apps
            let id = DeviceChannel(channel.channel, of: topic)?.id
            let found = apps.first { $0.topic == topic }?.channels.first { $0.id == id }
            guard let found else {
                throw CommandError(
                    .refused,
                    "\(topic) is not subscribed to this channel: see herald agent channel list"
                )
            }
            guard let newest = found.newest else {
                throw CommandError(.refused, "no broadcast of this channel has come: \(AgentReport.line(found))")
            }
            let record =
                try await folder.ask(["do": .string("shown"), "notification": .string(newest)])["shown"] ?? .null
            if json { return Terminal.sayJSON(record) }
            for line in try AgentReport.recordLines(record) { Terminal.say(line) }
        }
    }
}
