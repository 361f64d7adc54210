import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// One event of `herald agent run --json`: an object on one line, with the payload byte for byte.
struct AgentEventLine: Encodable {
    private var event: String
    private var device: String?
    private var topic: String?
    private var name: String?
    private var wants: [NotificationKind]?
    private var token: String?
    private var reason: String?
    private var nextAttempt: Double?
    private var url: String?
    private var apnsID: String?
    private var local: String?
    private var pushType: PushType?
    private var priority: UInt8?
    private var collapseID: String?
    private var expiresIn: Int64?
    private var repeated: Bool?
    private var shownBefore: Bool?
    private var presentation: DisplayRecord?
    private var payload: [UInt8]?

    private enum CodingKeys: String, CodingKey {
        case event, device, topic, name, wants, token, reason
        case nextAttempt = "next_attempt"
        case url
        case apnsID = "apns_id"
        case local
        case pushType = "push_type"
        case priority
        case collapseID = "collapse_id"
        case expiresIn = "expires_in"
        case repeated
        case shownBefore = "shown_before"
        case presentation
    }

    /// The address of the device's screen.
    init(screen url: String) {
        event = "screen"
        self.url = url
    }

    private init(named event: String) {
        self.event = event
    }

    init(_ event: AgentEvent, device: DeviceID) {
        switch event {
        case .connection(let event): self.init(event, device: device)
        case .notification(let notification, let record, let isRepeated):
            self.init(.notification(notification), device: device)
            shownBefore = isRepeated ? true : nil
            presentation = record
        case .presented(let record):
            self.init(named: "presented")
            topic = record.topic.name
            apnsID = record.apnsID
            presentation = record
        case .local(let record):
            self.init(named: "notification")
            topic = record.topic.name
            local = record.local
            presentation = record
            payload = record.payload.map { Array($0.utf8) }
        case .fault(let words):
            self.init(named: "fault")
            reason = words
        case .question(let app):
            self.init(named: "question")
            topic = app.topic.name
            name = app.name
            wants = app.wants
        }
    }

    init(_ event: DeviceEvent, device: DeviceID) {
        switch event {
        case .connected:
            self.event = "connected"
            self.device = device.name
        case .token(let token, let topic):
            self.event = "token"
            self.topic = topic.name
            self.token = token.hex
        case .appRefused(let topic, let reason):
            self.event = "refused"
            self.topic = topic.name
            self.reason = reason
        case .notification(let notification):
            self.event = "notification"
            topic = notification.topic.name
            apnsID = notification.id?.description
            pushType = notification.pushType
            priority = notification.priority?.rawValue
            collapseID = notification.collapseID
            expiresIn = notification.expiresIn?.components.seconds
            repeated = notification.isRepeated ? true : nil
            payload = notification.payload
        case .removed(let topic):
            self.event = "removed"
            self.topic = topic.name
        case .settingsTaken(let topic):
            self.event = "settings_taken"
            self.topic = topic.name
        case .disconnected(let reason, let pause):
            self.event = "disconnected"
            self.reason = reason
            nextAttempt = pause.map { Double($0.wholeMilliseconds / 100) / 10 }
        }
    }

    /// The line; a payload that is not JSON is a string.
    var text: String {
        let member = payload.map { payload in
            let json = JSONLine.payload(payload) ?? JSON.string(String(decoding: payload, as: UTF8.self)).bytes
            return (name: "payload", json: json)
        }
        let members = (try? JSON(encoding: self))?.members ?? ["event": .string(event)]
        return String(decoding: JSONLine.bytes(members, adding: member), as: UTF8.self)
    }
}
