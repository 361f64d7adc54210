import ArgumentParser
import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// `herald agent show`: prints the snapshot of the device.
struct AgentShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the running device: its apps, notifications and switches.",
        discussion: """
            Example:
              herald agent show --folder kitchen --json
            """
    )

    @OptionGroup var options: AgentFolderOptions

    @Flag(help: "Print the whole device as JSON.")
    var json = false

    func run() async throws {
        let folder = try options.existingFolder()
        let answer = try await folder.ask(["do": .string("device")])
        guard let device = answer["device"] else { return }
        if json { return Terminal.sayJSON(device) }
        for line in try AgentReport.lines(device, folder: folder.path) { Terminal.say(line) }
    }
}

/// `herald agent install`: installs an app's bundle.
struct AgentInstall: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install an app from its bundle's folder, or replace it.",
        discussion: """
            Example:
              herald agent install ./Monopoly.app --folder kitchen
            """
    )

    @Argument(help: ArgumentHelp("The folder that contains Info.plist.", valueName: "bundle"))
    var bundle: String

    @OptionGroup var options: AgentFolderOptions

    func run() async throws {
        let path = URL(fileURLWithPath: bundle).standardizedFileURL.path
        try await options.existingFolder().perform(.install(path: path))
    }
}

/// `herald agent remove`: removes an app and its data.
struct AgentRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove an app and its data. Its device token never works again.",
        discussion: """
            Example:
              herald agent remove com.example.chat --folder kitchen
            """
    )

    @Argument(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var topic: String

    @OptionGroup var options: AgentFolderOptions

    func run() async throws {
        let topic = try AgentTopic.read(topic)
        try await options.existingFolder().perform(.remove(topic))
    }
}

/// `herald agent allow`: sets the permission of an app.
struct AgentAllow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "allow",
        abstract: "Set an app's permission: alert, badge, sound, or none. Also the style of its alerts.",
        discussion: """
            With none, the app shows nothing. Silent notifications still wake it if its bundle has the background mode \
            remote-notification, or if it has no bundle. For other apps the service then discards all notifications.

            A banner goes away by itself after 5 seconds. An alert stays until the user answers it. With the style none, \
            alerts are only in the list of notifications. On a locked screen the style makes no difference.

            Example:
              herald agent allow com.example.chat alert,sound --style alert
            """
    )

    @Argument(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var topic: String

    @Argument(help: ArgumentHelp("alert, badge and sound, separated by commas; or none.", valueName: "list"))
    var list: String

    @Option(
        help: ArgumentHelp(
            "The style of its alerts: banner, alert or none. (default: as before; at first, banner)",
            valueName: "style"
        )
    )
    var style: String?

    @OptionGroup var options: AgentFolderOptions

    func run() async throws {
        let (topic, kinds) = (try AgentTopic.read(topic), try AgentPermission.kinds(list))
        let style = try style.map { try AgentPermission.style($0) }
        try await options.existingFolder().perform(.permit(topic, kinds, style: style))
    }
}

/// `herald agent set`: changes the device's switches.
struct AgentSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract:
            "Change the device: lock, languages, network, power saving, mute switch, Focus, clock, and the open app.",
        discussion: """
            A test moves the clock ahead instead of waiting: notifications that are due then are shown before the command \
            returns.

            Example:
              herald agent set --locked on --language fr --language en
              herald agent set --clock +10m --time-zone Europe/Berlin
            """
    )

    /// On or off.
    enum Position: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    @Option(help: ArgumentHelp("Whether the screen is locked.", valueName: "on|off"))
    var locked: Position?

    @Option(help: ArgumentHelp("The user's language; may be repeated, in order of preference.", valueName: "code"))
    var language: [String] = []

    @Option(help: ArgumentHelp("Whether the network is on.", valueName: "on|off"))
    var network: Position?

    @Option(help: ArgumentHelp("Whether power saving is on.", valueName: "on|off"))
    var saving: Position?

    @Option(help: ArgumentHelp("Whether the mute switch is on.", valueName: "on|off"))
    var muted: Position?

    @Option(help: ArgumentHelp("Whether a Focus is on.", valueName: "on|off"))
    var focus: Position?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How far the device's clock is ahead of the machine's: +10m, -1h, or 0 for not at all.",
            valueName: "time"
        )
    )
    var clock: String?

    @Option(
        help: ArgumentHelp(
            "The device's time zone, like Europe/Berlin; or machine, for the machine's.",
            valueName: "name"
        )
    )
    var timeZone: String?

    @Option(help: ArgumentHelp("Open an app.", valueName: "topic"))
    var open: String?

    @Flag(help: "Leave the open app.")
    var home = false

    @OptionGroup var options: AgentFolderOptions

    func run() async throws {
        var switches = PhoneSwitches()
        switches.locked = locked.map { $0 == .on }
        switches.languages = language.isEmpty ? nil : language
        switches.network = network.map { $0 == .on }
        switches.saving = saving.map { $0 == .on }
        switches.muted = muted.map { $0 == .on }
        switches.focus = focus.map { $0 == .on }
        switches.clock = try clock.map { try Self.seconds($0) }
        switches.timeZone = timeZone
        var actions = home ? [PhoneAction.home] : []
        if let open { actions.append(.open(try AgentTopic.read(open))) }
        if switches != PhoneSwitches() { actions.append(.set(switches)) }
        guard !actions.isEmpty else {
            throw ValidationError("Nothing to set: give an option, for example --locked on.")
        }
        let folder = try options.existingFolder()
        for action in actions { try await folder.ask(try action.request()) }
    }

    /// Reads `+10m`, `-1h` or `0`.
    private static func seconds(_ text: String) throws -> Double {
        let sign = text.first.flatMap { "+-".contains($0) ? $0 : nil }
        guard let time = DurationText.read(sign == nil ? text[...] : text.dropFirst()), sign != nil || time == .zero
        else {
            throw ValidationError(text, isNot: "+10m, -1h, or 0: at most ten years (3652d) either way")
        }
        return Double(time.wholeMilliseconds) / (sign == "-" ? -1000 : 1000)
    }
}

/// Reads a topic from the command line.
enum AgentTopic {
    static func read(_ text: String) throws -> Topic {
        guard let topic = Topic(text) else {
            throw ValidationError(text, isNot: "an app, like com.example.app")
        }
        return topic
    }
}
