import Foundation
import HeraldDevice
import HeraldModel

/// What happens to a device, as `herald agent run` prints it: a line or two for people, or one line of JSON.
enum AgentReport {
    /// Lines for people: what came, and what the user sees of it.
    ///
    /// `folder` is the device's, for the command that answers an app's question.
    static func lines(_ event: AgentEvent, device: DeviceID, folder: String? = nil) -> [String] {
        switch event {
        case .connection(let event): lines(event, device: device)
        case .notification(let notification, let record, let isRepeated):
            lines(.notification(notification), device: device)
                + (isRepeated ? ["  it came before, and is not shown again"] : words(record))
        case .presented(let record): ["notification for \(record.topic): apns-id \(record.apnsID)"] + words(record)
        case .question(let app): [waiting(app, folder)]
        }
    }

    /// How an app's question is answered without a terminal.
    static func waiting(_ app: PhoneSnapshot.App, _ folder: String?) -> String {
        let kinds = app.wants.map(\.rawValue).joined(separator: ",")
        let place = folder.flatMap { $0 == AgentPlace.defaultPath ? nil : " --folder \(shown($0))" } ?? ""
        return
            "\(app.topic) waits for permission: herald agent allow \(app.topic) \(kinds.isEmpty ? "none" : kinds)\(place)"
    }

    /// What an app may do, in words.
    private static func words(_ permission: NotificationSettings) -> String {
        let kinds = [(permission.alerts, "alerts"), (permission.badges, "badges"), (permission.sounds, "sounds")]
        let allowed = kinds.filter(\.0).map(\.1)
        return allowed.isEmpty ? "may do nothing" : "may use \(allowed.joined(separator: ", "))"
    }

    /// One line of JSON that says where the device's screen is.
    static func screen(_ url: String) -> String {
        object([("event", string("screen")), ("url", string(url))])
    }

    private static func words(_ record: SawRecord?) -> [String] {
        (record?.words ?? []).map { "  \(shown($0, limit: 8192))" }
    }

    /// One line of JSON.
    static func json(_ event: AgentEvent, device: DeviceID) -> String {
        switch event {
        case .connection(let event): return json(event, device: device)
        case .notification(let notification, let record, let isRepeated):
            var members = facts(notification)
            if isRepeated { members.append(("shown_before", "true")) }
            if let record { members.append(("presentation", json(record))) }
            return object(members)
        case .presented(let record):
            return object([
                ("event", string("presented")), ("topic", string(record.topic.name)),
                ("apns-id", string(record.apnsID)),
                ("presentation", json(record)),
            ])
        case .question(let app):
            return object([
                ("event", string("question")), ("topic", string(app.topic.name)), ("name", string(app.name)),
                ("wants", json(app.wants)),
            ])
        }
    }

    private static func json(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }

    private static func object(_ members: [(String, String)]) -> String {
        "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
    }

    /// Lines for people.
    ///
    /// Device tokens are shown whole: this is the device, and the token is its to hand on.
    static func lines(_ event: DeviceEvent, device: DeviceID) -> [String] {
        switch event {
        case .connected:
            ["connected as \(device)"]
        case .token(let token, let topic):
            ["token for \(topic): \(token.hex)"]
        case .appRefused(let topic, let reason):
            ["\(topic) is not registered: \(shown(reason))"]
        case .notification(let notification):
            [head(notification), "  \(shown(String(decoding: notification.payload, as: UTF8.self), limit: 8192))"]
        case .removed(let topic):
            ["\(topic) is removed: its token is dead"]
        case .settingsTaken(let topic):
            ["the service knows the settings of \(topic)"]
        case .disconnected(let reason, let pause?):
            ["disconnected: \(shown(reason)); connecting again in \(seconds(pause)) s"]
        case .disconnected(let reason, nil):
            ["disconnected: \(shown(reason))"]
        }
    }

    /// One line of JSON.
    static func json(_ event: DeviceEvent, device: DeviceID) -> String {
        var members: [(String, String)]
        switch event {
        case .connected:
            members = [("event", string("connected")), ("device", string(device.name))]
        case .token(let token, let topic):
            members = [("event", string("token")), ("topic", string(topic.name)), ("token", string(token.hex))]
        case .appRefused(let topic, let reason):
            members = [("event", string("refused")), ("topic", string(topic.name)), ("reason", string(reason))]
        case .notification(let notification):
            members = facts(notification)
        case .removed(let topic):
            members = [("event", string("removed")), ("topic", string(topic.name))]
        case .settingsTaken(let topic):
            members = [("event", string("settings_taken")), ("topic", string(topic.name))]
        case .disconnected(let reason, let pause):
            members = [("event", string("disconnected")), ("reason", string(reason))]
            if let pause { members.append(("next_attempt", seconds(pause))) }
        }
        return object(members)
    }

    private static func head(_ notification: ReceivedNotification) -> String {
        var head = "notification for \(notification.topic):"
        if let id = notification.id { head += " apns-id \(id)" }
        if let type = notification.pushType { head += " type \(type.rawValue)" }
        if let priority = notification.priority { head += " priority \(priority.rawValue)" }
        if let collapseID = notification.collapseID { head += " collapse-id \(shown(collapseID))" }
        if notification.isRepeated { head += " repeated" }
        return head
    }

    private static func facts(_ notification: ReceivedNotification) -> [(String, String)] {
        var facts = [("event", string("notification")), ("topic", string(notification.topic.name))]
        if let id = notification.id { facts.append(("apns-id", string(id.description))) }
        if let type = notification.pushType { facts.append(("apns-push-type", string(type.rawValue))) }
        if let priority = notification.priority { facts.append(("apns-priority", String(priority.rawValue))) }
        if let collapseID = notification.collapseID { facts.append(("apns-collapse-id", string(collapseID))) }
        if let span = notification.expiresIn { facts.append(("expires_in", String(span.components.seconds))) }
        if notification.isRepeated { facts.append(("repeated", "true")) }
        return facts + [("payload", payload(notification.payload))]
    }

    /// A payload as it came, on one line; what is not JSON is a string.
    private static func payload(_ bytes: [UInt8]) -> String {
        if case .malformed = PayloadScanner.scan(bytes) { return string(String(decoding: bytes, as: UTF8.self)) }
        // Within strings JSON has no line breaks (RFC 8259 §7), so that those that there are mean nothing.
        let line = bytes.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
        return String(decoding: line, as: UTF8.self)
    }

    private static func string(_ text: String) -> String {
        "\"\(LogText.escaped(text, limit: .max, spelling: .json))\""
    }

    // What the agent that runs says.

    /// A record of the agent's, for people.
    static func recordLines(_ value: PayloadValue) throws -> [String] {
        let record = try decoded(value, as: SawRecord.self)
        var lines = ["notification for \(record.topic), \(record.received)"] + words(record)
        if let outcome = record.background { lines.append("  the run in the background: \(outcome.rawValue)") }
        if let id = record.replacedBy { lines.append("  replaced by \(shown(id))") }
        if let answer = record.answer {
            lines.append("  the user \(answer.did.rawValue)\(answer.action.map { ": \(shown($0))" } ?? " it")")
        }
        return lines
    }

    /// The device, for people.
    static func lines(_ value: PayloadValue, folder: String?) throws -> [String] {
        let device = try decoded(value, as: PhoneSnapshot.self)
        let switches = [
            (device.locked, "locked"), (device.saving, "saving power"), (device.muted, "muted"),
            (device.focus, "in a Focus"),
            (!device.network, "without a network"),
        ]
        let state = switches.filter(\.0).map(\.1)
        var lines = [
            "\(device.device): \(device.connection.state.rawValue), \(device.service)"
                + (device.connection.reason.map { ": \(shown($0))" } ?? ""),
            "languages: \(device.languages.joined(separator: ", "))"
                + (state.isEmpty ? "" : "; \(state.joined(separator: ", "))"),
        ]
        for app in device.apps {
            let badge = app.badge == 0 ? "" : ", badge \(app.badge)"
            let permission = app.permission.map { ", \(words($0))" } ?? ""
            lines.append("\(shown(app.name)) (\(app.topic)): \(app.state.rawValue)\(permission)\(badge)")
            if app.permission == nil { lines.append("  " + waiting(app, folder)) }
            if let token = app.token { lines.append("  token \(shown(token))") }
            if let reason = app.refused { lines.append("  not registered: \(shown(reason))") }
        }
        for notification in device.notifications {
            let text = [notification.title, notification.subtitle, notification.body].compactMap { $0 }
            lines.append(
                "\(notification.id) \(shown(notification.app)): \(shown(text.joined(separator: ": "), limit: 8192))"
            )
        }
        for activity in device.activities {
            lines.append("\(activity.id) \(shown(activity.app)): Live Activity, \(activity.state.rawValue)")
        }
        return lines
    }

    private static func decoded<Value: Decodable>(_ value: PayloadValue, as type: Value.Type) throws -> Value {
        do {
            return try JSONDecoder().decode(type, from: JSONEncoder().encode(value))
        } catch {
            throw CommandError(.refused, "the agent's answer cannot be read: is it of another version?")
        }
    }

    private static func shown(_ text: String, limit: Int = LogText.longestMessage) -> String {
        LogText.escaped(text, limit: limit, spelling: .terminal)
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = duration.wholeMilliseconds / 100
        return "\(tenths / 10).\(tenths % 10)"
    }
}
