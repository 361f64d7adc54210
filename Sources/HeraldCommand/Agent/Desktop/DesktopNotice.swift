import Foundation
import HeraldDevice

/// A notification as the desktop's notification service takes it (Desktop Notifications Specification 1.2, `Notify`).
struct DesktopNotice: Hashable, Sendable {
    /// How much it matters; the specification's numbers.
    enum Urgency: UInt8, Sendable {
        case low = 0
        case normal = 1
        case critical = 2
    }

    /// What is heard with it.
    enum Sound: Hashable, Sendable {
        case none
        /// The desktop's own sound of a message.
        case standard
        /// A file, by its path.
        case file(String)
    }

    /// A button.
    struct Button: Hashable, Sendable {
        /// What comes back when it is pressed.
        var key: String
        var label: String
    }

    /// The key of a click on the notification itself.
    static let openingKey = "default"
    /// The longest text that is handed on, in characters, and the longest label of a button.
    static let maximumText = 2000
    static let maximumLabel = 100

    /// The name of the app.
    var app: String
    /// The path of the app's icon.
    var icon: String?
    var summary: String
    var body: String
    var buttons: [Button] = []
    var urgency: Urgency
    var sound: Sound

    /// A notification of the device, for a service that can do what `capabilities` names.
    init(
        _ notification: PhoneSnapshot.Notification,
        icon: String?,
        sound: Sound,
        capabilities: Set<String>
    ) {
        app = Self.text(notification.app, limit: Self.maximumLabel)
        self.icon = icon
        self.sound = sound
        urgency =
            switch notification.interruption {
            case "critical", "time-sensitive": .critical
            default: notification.place == .list ? .low : .normal
            }
        if notification.interruption == "passive" { urgency = .low }
        let title = notification.title.flatMap { $0.isEmpty ? nil : $0 } ?? notification.app
        let lines = [notification.subtitle, notification.body].compactMap { $0 }.filter { !$0.isEmpty }
        if capabilities.contains("body") {
            summary = Self.text(title)
            body = Self.text(lines.joined(separator: "\n"))
            if capabilities.contains("body-markup") { body = Self.escaped(body) }
        } else {
            summary = Self.text(([title] + lines).joined(separator: ": "))
            body = ""
        }
        if capabilities.contains("actions") {
            let view = notification.slider ?? notification.buttons.last ?? "View"
            buttons = [Button(key: Self.openingKey, label: Self.text(view, limit: Self.maximumLabel))]
            // A desktop has no field for a text: actions that need one are for the screen.
            buttons += notification.actions.enumerated().filter { !$1.takesText }
                .map { Button(key: "action-\($0)", label: Self.text($1.title, limit: Self.maximumLabel)) }
        }
    }

    /// The action of a notification that a key names.
    static func action(_ key: String, of notification: PhoneSnapshot.Notification) -> PhoneAction? {
        if key == openingKey { return .tap(id: notification.id) }
        guard key.hasPrefix("action-"), let index = Int(key.dropFirst("action-".count)),
            notification.actions.indices.contains(index)
        else { return nil }
        return .act(id: notification.id, action: notification.actions[index].identifier, text: nil)
    }

    /// A text without what the desktop would choke on: control characters, which markup does not allow, and excess.
    private static func text(_ text: String, limit: Int = maximumText) -> String {
        let clean = String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t" ? " " : scalar
                }
            )
        )
        return clean.count > limit ? clean.prefix(limit - 1) + "…" : clean
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
