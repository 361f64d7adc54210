import Foundation
import HeraldPhone

/// A notification for the desktop's notification service (Desktop Notifications Specification 1.2, `Notify`).
struct DesktopNotification: Hashable, Sendable {
    /// The urgency, with the specification's numbers.
    enum Urgency: UInt8, Sendable {
        case low = 0
        case normal = 1
        case critical = 2
    }

    enum Sound: Hashable, Sendable {
        case none
        /// The desktop's own message sound.
        case standard
        /// A file, by its path.
        case file(String)
    }

    struct Button: Hashable, Sendable {
        /// The key that the desktop returns when it is pressed.
        var key: String
        var label: String
    }

    /// The key of a click on the notification itself.
    static let openingKey = "default"
    /// The longest text and the longest button label, in characters.
    static let maximumText = 2000
    static let maximumLabel = 100

    var app: String
    /// The path of the app's icon.
    var icon: String?
    var summary: String
    var body: String
    var buttons: [Button] = []
    var urgency: Urgency
    var sound: Sound

    /// Converts a notification of the device, for a service with these capabilities.
    ///
    /// `count` is the number of notifications of its thread for which it stands.
    init(
        _ notification: PhoneSnapshot.Notification,
        count: Int = 1,
        icon: String?,
        sound: Sound,
        words: DeviceWords,
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
        var title = notification.title.flatMap { $0.isEmpty ? nil : $0 } ?? notification.app
        if count > 1 { title += " (\(count))" }
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
            let view = notification.slider ?? notification.buttons.last ?? words[.view]
            buttons = [Button(key: Self.openingKey, label: Self.text(view, limit: Self.maximumLabel))]
            // Desktops have no text field: actions that need a text are left out.
            buttons += notification.actions.enumerated().filter { !$1.takesText }
                .map { Button(key: "action-\($0)", label: Self.text($1.title, limit: Self.maximumLabel)) }
        }
    }

    static func action(_ key: String, of notification: PhoneSnapshot.Notification) -> PhoneAction? {
        if key == openingKey { return .tap(id: notification.id) }
        guard key.hasPrefix("action-"), let index = Int(key.dropFirst("action-".count)),
            notification.actions.indices.contains(index)
        else { return nil }
        return .act(id: notification.id, action: notification.actions[index].identifier, text: nil)
    }

    /// Removes control characters, which markup does not allow, and shortens the text.
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
