import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// The output of the agent commands for people.
enum AgentReport {
    /// The lines for an event; `folder` is the device's folder, for the command that answers a permission request.
    static func lines(_ event: AgentEvent, device: DeviceID, folder: String? = nil) -> [String] {
        switch event {
        case .connection(let event): lines(event, device: device)
        case .notification(let notification, let record, let isRepeated):
            lines(.notification(notification), device: device)
                + (isRepeated ? ["  duplicate, not shown again"] : words(record))
        case .presented(let record): ["notification for \(record.topic): apns-id \(record.apnsID)"] + words(record)
        case .local(let record):
            [
                "local notification for \(record.topic): \(shown(record.local ?? ""))",
                "  \(shown(record.payload ?? "", limit: 8192))",
            ] + words(record)
        case .fault(let words): ["herald: \(shown(words, limit: 8192))"]
        case .question(let app): [waiting(app, folder)]
        }
    }

    /// The command that answers an app's permission request.
    static func waiting(_ app: PhoneSnapshot.App, _ folder: String?) -> String {
        let kinds = app.wants.map(\.rawValue).joined(separator: ",")
        let place = folder.flatMap { $0 == AgentFolderPath.defaultPath ? nil : " --folder \(shown($0))" } ?? ""
        return
            "\(app.topic) waits for permission: herald agent allow \(app.topic) \(kinds.isEmpty ? "none" : kinds)\(place)"
    }

    /// The permission in words.
    private static func words(_ permission: NotificationSettings) -> String {
        let kinds = [(permission.alerts, "alerts"), (permission.badges, "badges"), (permission.sounds, "sounds")]
        let allowed = kinds.filter(\.0).map(\.1)
        return allowed.isEmpty ? "may do nothing" : "may use \(allowed.joined(separator: ", "))"
    }

    private static func words(_ record: DisplayRecord?) -> [String] {
        (record?.words ?? []).map { "  \(shown($0, limit: 8192))" }
    }

    /// The lines for an event of the connection.
    ///
    /// Device tokens are printed in full, because the device hands them to its providers.
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
            ["\(topic) was removed: its token no longer works"]
        case .settingsTaken(let topic, _):
            ["the service has confirmed the settings of \(topic)"]
        case .announced(let addresses, let authorities):
            [
                "the service announces its addresses \(shown(addresses.joined(separator: ", "))) and \(authorities) "
                    + (authorities == 1 ? "authority" : "authorities")
            ]
        case .announcementRefused(let reason):
            ["an announcement of the service is not followed: \(shown(reason))"]
        case .subscribed(let channel): ["\(channel.topic) is subscribed to channel \(channel.id)"]
        case .channelRefused(let channel, let reason):
            ["\(channel.topic) is not subscribed to channel \(channel.id): \(shown(reason))"]
        case .disconnected(let reason, let pause?):
            ["disconnected: \(shown(reason)); connecting again in \(seconds(pause)) s"]
        case .disconnected(let reason, nil):
            ["disconnected: \(shown(reason))"]
        }
    }

    private static func head(_ notification: ReceivedNotification) -> String {
        let kind = notification.channel.map { ("broadcast of channel \($0)", "apns-unique-id") }
        let (name, key) = kind ?? ("notification", "apns-id")
        var head = "\(name) for \(notification.topic):"
        if let id = notification.id { head += " \(key) \(id)" }
        if let type = notification.pushType { head += " type \(type.rawValue)" }
        if let priority = notification.priority { head += " priority \(priority.rawValue)" }
        if let collapseID = notification.collapseID { head += " collapse-id \(shown(collapseID))" }
        if notification.isRepeated { head += " repeated" }
        return head
    }

    // MARK: - Answers of the running agent

    /// The lines for a display record.
    static func recordLines(_ value: JSON) throws -> [String] {
        let record = try decoded(value, as: DisplayRecord.self)
        let kind =
            record.local.map { "local notification \(shown($0))" }
            ?? record.channel.map { "broadcast of channel \(shown($0))" } ?? "notification"
        var lines = ["\(kind) for \(record.topic), \(record.received)"] + words(record)
        if let outcome = record.background { lines.append("  background run: \(outcome.rawValue)") }
        if let id = record.replacedBy { lines.append("  replaced by \(shown(id))") }
        if let response = record.response {
            lines.append("  the user \(response.kind.rawValue)\(response.action.map { ": \(shown($0))" } ?? " it")")
        }
        return lines
    }

    /// The line for a pending local notification.
    static func line(_ pending: PendingNotification) -> String {
        let rule = if case .every(let rule) = pending.notification.trigger { ", every \(rule)" } else { "" }
        return "\(shown(pending.notification.id)) of \(pending.topic): due \(time(pending.next))\(rule)"
    }

    /// The line for a subscription to a channel.
    static func line(_ channel: PhoneSnapshot.Channel) -> String {
        let newest = channel.newest.map { ", newest broadcast \(shown($0))" } ?? ""
        let refused = channel.refused.map { ", refused: \(shown($0))" } ?? ""
        return "channel \(shown(channel.id))\(newest)\(refused)"
    }

    private static func time(_ unixSeconds: Double) -> String {
        WallTime(unixSeconds: unixSeconds).rfc3339
    }

    /// The lines for a snapshot.
    static func lines(_ value: JSON, folder: String?) throws -> [String] {
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
            "clock: \(time(device.time)), \(device.timeZone)" + (device.clock == 0 ? "" : ", moved"),
        ]
        for app in device.apps {
            let badge = app.badge == 0 ? "" : ", badge \(app.badge)"
            let permission = app.permission.map { ", \(words($0))" } ?? ""
            let style = app.style == .banner ? "" : ", alert style \(app.style.rawValue)"
            lines.append("\(shown(app.name)) (\(app.topic)): \(app.state.rawValue)\(permission)\(style)\(badge)")
            if app.permission == nil { lines.append("  " + waiting(app, folder)) }
            if let token = app.token { lines.append("  token \(shown(token))") }
            for pending in app.pending {
                let text = [pending.title, pending.body].compactMap { $0 }.joined(separator: ": ")
                lines.append("  due \(time(pending.next)): \(shown(pending.id)): \(shown(text, limit: 8192))")
            }
            if let reason = app.refused { lines.append("  not registered: \(shown(reason))") }
            lines += app.channels.map { "  " + line($0) }
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

    static func decoded<Value: Decodable>(_ value: JSON, as type: Value.Type) throws -> Value {
        do {
            return try value.decode(type)
        } catch {
            throw CommandError(.refused, "the agent's answer cannot be read: does it run this version of Herald?")
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
