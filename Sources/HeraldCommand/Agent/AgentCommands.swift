import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel

/// `herald agent show`: how the device looks.
struct AgentShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the device that runs: its apps, what it shows, and its switches.",
        discussion: """
            Example:
              herald agent show --folder kitchen --json
            """
    )

    @OptionGroup var place: AgentFolderOptions

    @Flag(help: "Print the whole device as JSON.")
    var json = false

    func run() async throws {
        let place = try place.place()
        let answer = try await place.ask(["do": .string("device")])
        guard let device = answer["device"] else { return }
        if json { return try Terminal.sayJSON(device) }
        for line in try AgentReport.lines(device, folder: place.path) { Terminal.say(line) }
    }
}

/// `herald agent install`: an app's bundle.
struct AgentInstall: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install an app from its bundle's folder; one with its identifier is replaced.",
        discussion: """
            Example:
              herald agent install ./Monopoly.app --folder kitchen
            """
    )

    @Argument(help: ArgumentHelp("The folder that Info.plist is in.", valueName: "bundle"))
    var bundle: String

    @OptionGroup var place: AgentFolderOptions

    func run() async throws {
        let path = URL(fileURLWithPath: bundle).standardizedFileURL.path
        try await place.place().perform(["do": .string("install"), "path": .string(path)], .install(path: path))
    }
}

/// `herald agent remove`: an app and all that it has.
struct AgentRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove an app and everything that it has on the device; its device token dies.",
        discussion: """
            Example:
              herald agent remove com.example.chat --folder kitchen
            """
    )

    @Argument(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var topic: String

    @OptionGroup var place: AgentFolderOptions

    func run() async throws {
        let topic = try AgentTopic.read(topic)
        try await place.place().perform(["do": .string("remove"), "topic": .string(topic.name)], .remove(topic))
    }
}

/// `herald agent allow`: what an app may do.
struct AgentAllow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "allow",
        abstract: "Say what an app may do: alert, badge, sound, or none.",
        discussion: """
            An app that may do nothing is switched off at the service too.

            Example:
              herald agent allow com.example.chat alert,sound
            """
    )

    @Argument(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var topic: String

    @Argument(help: ArgumentHelp("alert, badge and sound with commas, or none.", valueName: "list"))
    var list: String

    @OptionGroup var place: AgentFolderOptions

    func run() async throws {
        let (topic, kinds) = (try AgentTopic.read(topic), try AgentPermission.kinds(list))
        let names = NotificationKind.allCases.filter(kinds.contains).map { PayloadValue.string($0.rawValue) }
        try await place.place().perform(
            ["do": .string("permit"), "topic": .string(topic.name), "allow": .array(names)],
            .permit(topic, kinds)
        )
    }
}

/// `herald agent set`: the device's switches.
struct AgentSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract:
            "Change the device: its lock, languages, network, power, mute switch, Focus, and the app that is open.",
        discussion: """
            Example:
              herald agent set --locked on --language fr --language en
            """
    )

    /// On or off.
    enum Position: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    @Option(help: ArgumentHelp("Whether the screen is locked.", valueName: "on|off"))
    var locked: Position?

    @Option(help: ArgumentHelp("The user's language; may be repeated, the dearest first.", valueName: "code"))
    var language: [String] = []

    @Option(help: ArgumentHelp("Whether it has a network.", valueName: "on|off"))
    var network: Position?

    @Option(help: ArgumentHelp("Whether it saves power.", valueName: "on|off"))
    var saving: Position?

    @Option(help: ArgumentHelp("Whether it is muted.", valueName: "on|off"))
    var muted: Position?

    @Option(help: ArgumentHelp("Whether a Focus is on.", valueName: "on|off"))
    var focus: Position?

    @Option(help: ArgumentHelp("Opens an app.", valueName: "topic"))
    var open: String?

    @Flag(help: "Leaves the app that is open.")
    var home = false

    @OptionGroup var place: AgentFolderOptions

    func run() async throws {
        var members: [String: PayloadValue] = [:]
        let switches = [
            ("network", network), ("saving", saving), ("muted", muted), ("focus", focus), ("locked", locked),
        ]
        for (name, position) in switches {
            if let position { members[name] = .boolean(position == .on) }
        }
        if !language.isEmpty { members["languages"] = .array(language.map { .string($0) }) }
        let topic = try open.map { try AgentTopic.read($0) }
        guard !members.isEmpty || topic != nil || home else {
            throw ValidationError("Nothing to set: say for example --locked on.")
        }
        let place = try place.place()
        if home { try await place.ask(["do": .string("home")]) }
        if let topic { try await place.ask(["do": .string("open"), "topic": .string(topic.name)]) }
        guard !members.isEmpty else { return }
        members["do"] = .string("set")
        try await place.ask(members)
    }
}

/// A topic on the command line.
enum AgentTopic {
    static func read(_ text: String) throws -> Topic {
        guard let topic = Topic(text) else {
            throw ValidationError("'\(LogText.escaped(text, limit: 64))' is not an app, like com.example.app.")
        }
        return topic
    }
}
