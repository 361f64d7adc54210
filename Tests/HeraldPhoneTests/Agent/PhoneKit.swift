import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

/// A phone with apps on it, and a clock that the test moves.
struct PhoneKit {
    static let topic = Topic("com.example.monopoly") ?? Topic.unlikely
    static let other = Topic("com.example.chat") ?? Topic.unlikely

    var phone: Phone
    var now = WallTime(seconds: 1_772_366_400)
    private var serial: UInt64 = 0

    /// A phone with one app; `wakes` says whether its bundle has the background mode `remote-notification`.
    init(
        allow: Set<NotificationKind>? = Set(NotificationKind.allCases),
        programs: Set<ProgramEvent> = [],
        wakes: Bool = true
    ) throws {
        phone = Phone(device: "d1", service: "localhost:5223")
        var information = AppInformation(topic: Self.topic)
        information.name = "Monopoly"
        information.hasBundle = true
        information.programs = programs
        var bundle = try ExpectedPayload.monopoly()
        bundle.images.insert("Launch.png")
        bundle.wakesInBackground = wakes
        bundle.categories["INVITE"] = NotificationCategory(
            identifier: "INVITE",
            actions: [
                NotificationCategory.Action(identifier: "accept", title: "Accept", opensApp: true),
                NotificationCategory.Action(identifier: "reply", title: "Reply", needsUnlocking: true, takesText: true),
            ]
        )
        _ = try phone.install(information, bundle, allow: allow, now)
    }

    func notification(
        _ payload: String,
        _ topic: Topic = Self.topic,
        id: NotificationID? = nil,
        type: PushType = .alert,
        collapse: String? = nil
    ) -> ReceivedNotification {
        ReceivedNotification(
            topic: topic,
            payload: Array(payload.utf8),
            id: id ?? NotificationID(high: 1, low: serial),
            pushType: type,
            priority: .immediate,
            collapseID: collapse,
            expiresIn: nil,
            isRepeated: false
        )
    }

    @discardableResult
    mutating func receive(
        _ payload: String,
        _ topic: Topic = Self.topic,
        type: PushType = .alert,
        collapse: String? = nil
    ) -> Phone.Reception {
        serial += 1
        return phone.receive(notification(payload, topic, type: type, collapse: collapse), now)
    }

    @discardableResult
    mutating func does(_ action: PhoneAction) throws -> [PhoneEffect] {
        try phone.perform(action, now)
    }

    var snapshot: PhoneSnapshot { phone.snapshot(now) }
    var app: PhoneSnapshot.App? { snapshot.apps.first { $0.topic == Self.topic } }
    var newest: PhoneSnapshot.Notification? { snapshot.notifications.first }

    /// The phone after a restart from what was durable.
    mutating func restart() throws -> [PhoneEffect] {
        let state = try JSON.decode(PhoneState.self, from: JSON.encode(phone.state))
        #expect(state == phone.state)
        phone = Phone(device: "d1", service: "localhost:5223", state: state, bundles: phone.bundles)
        return phone.start(now)
    }
}

extension Topic {
    /// For tests that need a topic and have a literal that is one.
    static var unlikely: Topic {
        guard let topic = Topic("unlikely") else { preconditionFailure("a topic") }
        return topic
    }
}
