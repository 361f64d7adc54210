import ArgumentParser
import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// `herald agent schedule`: schedules a local notification.
struct AgentSchedule: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Schedule a notification of an app on the device itself, without a provider.",
        discussion: """
            The device shows it when it is due, also without a network. An app may have 64 pending notifications. Prints \
            when it is due.

            A rule is an interval (15m, 2h), or a time of the device's time zone: "day 07:00", "monday 07:00", \
            "month 1 07:00", "year 12-24 18:00".

            Example:
              herald agent schedule --app com.example.timer --after 10m --alert "The eggs are ready" --sound default
              herald agent schedule --app com.example.timer --every "monday 07:00" --alert "Get up" --id morning
            """
    )

    @Option(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var app: String

    @Option(help: ArgumentHelp("How long from now: 90s, 10m, 1h.", valueName: "time"))
    var after: String?

    @Option(
        help: ArgumentHelp(
            "When: 2026-12-24T18:00 in the device's time zone; with Z or +01:00, the same moment in every zone.",
            valueName: "time"
        )
    )
    var at: String?

    @Option(help: ArgumentHelp("Again and again: a rule.", valueName: "rule"))
    var every: String?

    @Option(
        help: ArgumentHelp(
            "Its identifier; replaces the pending one, and the one on the screen, with the same identifier. (default: a new one)",
            valueName: "name"
        )
    )
    var id: String?

    @Option(help: ArgumentHelp("The text to show.", valueName: "text"))
    var alert: String?

    @Option(help: ArgumentHelp("The title to show.", valueName: "text"))
    var title: String?

    @Option(help: ArgumentHelp("The sound to play: a name, or default.", valueName: "name"))
    var sound: String?

    @Option(help: ArgumentHelp("The number on the app's icon; 0 removes it.", valueName: "n"))
    var badge: Int?

    @Option(help: ArgumentHelp("The category, which has the buttons.", valueName: "name"))
    var category: String?

    @Option(help: ArgumentHelp("The group of notifications that it belongs to.", valueName: "name"))
    var thread: String?

    @Option(
        help: ArgumentHelp(
            "The payload, as a file or as JSON; the options above go into its aps.",
            valueName: "file|json"
        )
    )
    var payload: String?

    @OptionGroup var options: AgentFolderOptions

    func validate() throws {
        try EmptyText.refuse([
            ("id", id), ("alert", alert), ("title", title), ("sound", sound), ("category", category),
            ("thread", thread),
        ])
        _ = try trigger()
    }

    func run() async throws {
        let topic = try AgentTopic.read(app)
        let notification = LocalNotification(
            id: id ?? UUID().uuidString.lowercased(),
            payload: try content(),
            trigger: try trigger()
        )
        let folder = try options.existingFolder()
        try await folder.perform(.schedule(topic, notification))
        for pending in try await folder.pending(of: topic) where pending.notification.id == notification.id {
            Terminal.say(AgentReport.line(pending))
        }
    }

    private func trigger() throws -> LocalNotification.Trigger {
        func wrong(_ text: String, _ words: String) -> ValidationError { ValidationError(text, isNot: words) }
        switch (after, at, every) {
        case (let text?, nil, nil):
            guard let time = DurationText.read(text), time > .zero else { throw wrong(text, "a time, like 90s or 10m") }
            return .after(time)
        case (nil, let text?, nil):
            guard let moment = CalendarMoment(text) else { throw wrong(text, LocalNotification.Trigger.momentWords) }
            return .at(moment)
        case (nil, nil, let text?):
            guard let rule = CalendarRule(text) else { throw wrong(text, LocalNotification.Trigger.ruleWords) }
            return .every(rule)
        default: throw ValidationError("Give one of --after, --at and --every.")
        }
    }

    /// The payload that was named, with the other options in its `aps`.
    func content() throws -> JSON {
        var members: JSON.Object = [:]
        if let payload {
            let bytes =
                payload.first { !$0.isWhitespace } == "{"
                ? Array(payload.utf8) : TextEncoding.plain(try SafeFile.read(payload))
            let read: JSON?
            do throws(JSON.Failure) {
                read = try JSON(bytes, rules: .payload)
            } catch {
                guard error.reason != .tooDeep else {
                    throw ValidationError(
                        "The payload is nested deeper than \(JSON.Rules.payload.maximumDepth) arrays and objects."
                    )
                }
                read = nil
            }
            guard let object = read?.members else {
                throw ValidationError("The payload is not a JSON object, like {\"aps\":{\"alert\":\"Hello\"}}.")
            }
            members = object
        }
        guard var aps = (members["aps"] ?? .object([:])).members else {
            throw ValidationError("The payload's aps is not an object, like {\"alert\":\"Hello\"}.")
        }
        if alert != nil || title != nil { aps["alert"] = try merged(aps["alert"]) }
        if let badge { aps["badge"] = .number(JSON.Number(badge)) }
        for (key, text) in [("sound", sound), ("category", category), ("thread-id", thread)] {
            if let text { aps[key] = .string(text) }
        }
        members["aps"] = .object(aps)
        return .object(members)
    }

    /// The payload's alert with the title and the text of the options; each also replaces its localization key.
    private func merged(_ former: JSON?) throws -> JSON {
        var members: JSON.Object
        switch former {
        case nil: members = [:]
        case .string(let body)?: members = ["body": .string(body)]
        case .object(let read)?: members = read
        default: throw ValidationError("The payload's alert is not a text or an object, like {\"body\":\"Hello\"}.")
        }
        for (prefix, key, text) in [("", "body", alert), ("title-", "title", title)] {
            guard let text else { continue }
            members["\(prefix)loc-key"] = nil
            members["\(prefix)loc-args"] = nil
            members[key] = .string(text)
        }
        return members.count == 1 ? members["body"] ?? .object(members) : .object(members)
    }
}

/// `herald agent pending`: lists pending local notifications.
struct AgentPending: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pending",
        abstract: "List the notifications that apps have scheduled and that are not due yet.",
        discussion: """
            Example:
              herald agent pending --app com.example.timer --json
            """
    )

    @Option(help: ArgumentHelp("Only those of this app.", valueName: "topic"))
    var app: String?

    @OptionGroup var options: AgentFolderOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let topic = try app.map { try AgentTopic.read($0) }
        let pending = try await options.existingFolder().pending(of: topic)
        if json { return Terminal.sayJSON(try JSON(encoding: pending)) }
        for one in pending { Terminal.say(AgentReport.line(one)) }
    }
}

/// `herald agent cancel`: cancels pending local notifications.
struct AgentCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel a notification that an app has scheduled, or all of the app.",
        discussion: """
            Notifications on the screen remain.

            Example:
              herald agent cancel --app com.example.timer morning
            """
    )

    @Option(help: ArgumentHelp("The app's identifier.", valueName: "topic"))
    var app: String

    @Argument(help: ArgumentHelp("The identifier of the notification.", valueName: "name"))
    var id: String?

    @Flag(help: "Cancel all that the app has scheduled.")
    var all = false

    @OptionGroup var options: AgentFolderOptions

    func validate() throws {
        guard (id == nil) == all else { throw ValidationError("Name a notification, or give --all.") }
    }

    func run() async throws {
        let topic = try AgentTopic.read(app)
        try await options.existingFolder().perform(.cancel(topic, id: id))
    }
}
