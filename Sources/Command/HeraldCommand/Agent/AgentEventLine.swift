import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// One event of `herald agent run --json`: an object on one line, with the payload byte for byte.
struct AgentEventLine {
    /// Nil for a member that the event does not have.
    private var members: [String: JSON?]
    private var payload: [UInt8]?

    private init(_ event: String, _ members: [String: JSON?], payload: [UInt8]? = nil) {
        self.members = members.merging(["event": .string(event)]) { own, _ in own }
        self.payload = payload
    }

    /// The address of the device's screen.
    init(screen url: String) {
        self.init("screen", ["url": .string(url)])
    }

    init(_ event: AgentEvent, device: DeviceID) {
        switch event {
        case .connection(let event): self.init(event, device: device)
        case .notification(let notification, let record, let isRepeated):
            self.init(.notification(notification), device: device)
            if isRepeated { members["shown_before"] = .boolean(true) }
            members["presentation"] = record.flatMap { Self.json($0) }
        case .presented(let record):
            self.init("presented", ["topic": .string(record.topic.name), "apns_id": .string(record.apnsID)])
            members["presentation"] = Self.json(record)
        case .local(let record):
            self.init("notification", ["topic": .string(record.topic.name), "local": Self.json(record.local)])
            members["presentation"] = Self.json(record)
            payload = record.payload.map { Array($0.utf8) }
        case .fault(let words): self.init("fault", ["reason": .string(words)])
        case .question(let app):
            let topic = JSON.string(app.topic.name)
            self.init("question", ["topic": topic, "name": .string(app.name), "wants": Self.json(app.wants)])
        }
    }

    init(_ event: DeviceEvent, device: DeviceID) {
        switch event {
        case .connected: self.init("connected", ["device": .string(device.name)])
        case .announced(let addresses, let authorities):
            self.init(
                "announced",
                ["addresses": .array(addresses.map { .string($0) }), "authorities": Self.json(authorities)]
            )
        case .announcementRefused(let reason): self.init("announcement_refused", ["reason": .string(reason)])
        case .token(let token, let topic):
            self.init("token", ["topic": .string(topic.name), "token": .string(token.hex)])
        case .appRefused(let topic, let reason):
            self.init("refused", ["topic": .string(topic.name), "reason": .string(reason)])
        case .notification(let notification):
            let members: [String: JSON?] = [
                "topic": .string(notification.topic.name),
                "channel": notification.channel.map { .string($0) },
                "apns_id": Self.json(notification.id?.description),
                "push_type": Self.json(notification.pushType),
                "priority": Self.json(notification.priority?.rawValue),
                "collapse_id": Self.json(notification.collapseID),
                "expires_in": Self.json(notification.expiresIn?.components.seconds),
                "repeated": notification.isRepeated ? .boolean(true) : nil,
            ]
            self.init("notification", members, payload: notification.payload)
        case .removed(let topic): self.init("removed", ["topic": .string(topic.name)])
        case .settingsTaken(let topic, _): self.init("settings_taken", ["topic": .string(topic.name)])
        case .subscribed(let channel): self.init("channel", Self.members(of: channel))
        case .channelRefused(let channel, let reason):
            self.init("channel", Self.members(of: channel).merging(["refused": .string(reason)]) { $1 })
        case .disconnected(let reason, let pause):
            let seconds = pause.map { Double($0.wholeMilliseconds / 100) / 10 }
            self.init("disconnected", ["reason": .string(reason), "next_attempt": Self.json(seconds)])
        }
    }

    private static func members(of channel: DeviceChannel) -> [String: JSON?] {
        ["topic": .string(channel.topic.name), "channel": .string(channel.id)]
    }

    private static func json(_ value: (some Encodable)?) -> JSON? {
        value.flatMap { try? JSON(encoding: $0) }
    }

    /// The line; a payload that is not JSON is a string.
    var text: String {
        let member = payload.map { payload in
            let json = JSONLine.payload(payload) ?? JSON.string(String(decoding: payload, as: UTF8.self)).bytes
            return (name: "payload", json: json)
        }
        var object: JSON.Object = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) { object[name] = value }
        return String(decoding: JSONLine.bytes(object, adding: member), as: UTF8.self)
    }
}
