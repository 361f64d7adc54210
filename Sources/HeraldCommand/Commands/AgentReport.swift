import HeraldDevice
import HeraldModel

/// What happens to a device, as `herald agent run` prints it: a line or two for people, or one line of JSON.
enum AgentReport {
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
        return "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
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

    private static func shown(_ text: String, limit: Int = LogText.longestMessage) -> String {
        LogText.escaped(text, limit: limit, spelling: .terminal)
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = duration.wholeMilliseconds / 100
        return "\(tenths / 10).\(tenths % 10)"
    }
}
