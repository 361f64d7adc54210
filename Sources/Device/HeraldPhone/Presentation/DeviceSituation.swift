public import HeraldModel

/// A notification that has arrived on the device.
public struct IncomingNotification: Hashable, Sendable {
    /// The payload's bytes.
    public var payload: [UInt8]
    /// Its `apns-push-type`; nil counts as ``HeraldModel/PushType/alert``.
    public var pushType: PushType?
    /// Its `apns-collapse-id`.
    public var collapseID: String?
    /// Whether it is a broadcast of a channel.
    public var isBroadcast = false

    /// Creates a notification.
    public init(payload: [UInt8], pushType: PushType? = nil, collapseID: String? = nil) {
        self.payload = payload
        self.pushType = pushType
        self.collapseID = collapseID
    }
}

/// The state of an app.
public enum AppState: String, Hashable, Sendable, CaseIterable, Codable {
    /// The app is in the foreground.
    case foreground
    /// The app is running in the background.
    case background
    /// The app is not running. The system may start it.
    case notRunning = "not running"
    /// The user ended the app. The system does not start it until the user opens it.
    case endedByUser = "ended by the user"

    var isRunning: Bool { self == .foreground || self == .background }
}

/// The user's permission for an app's notifications.
public struct NotificationSettings: Hashable, Sendable, Codable {
    /// Whether alerts are shown.
    public var alerts = true
    /// Whether the icon shows a badge.
    public var badges = true
    /// Whether sounds are played.
    public var sounds = true

    /// Allows everything.
    public init() {}

    init(_ kinds: some Sequence<NotificationKind>) {
        let kinds = Set(kinds)
        alerts = kinds.contains(.alert)
        badges = kinds.contains(.badge)
        sounds = kinds.contains(.sound)
    }

    var kinds: [NotificationKind] {
        NotificationKind.allCases.filter { kind in
            switch kind {
            case .alert: alerts
            case .badge: badges
            case .sound: sounds
            }
        }
    }
}

/// A notification on the screen.
public struct ShownNotification: Hashable, Sendable {
    /// Its identifier.
    public var id: String
    /// Its collapse identifier.
    public var collapseID: String?

    /// Creates a notification.
    public init(id: String, collapseID: String? = nil) {
        self.id = id
        self.collapseID = collapseID
    }
}

/// A Live Activity on the screen.
public struct ShownActivity: Hashable, Sendable {
    /// The `timestamp` of its content, in UNIX seconds.
    public var timestamp: Double

    /// Creates an activity.
    public init(timestamp: Double) {
        self.timestamp = timestamp
    }
}

/// The state of a device, as far as it affects the presentation of a notification.
public struct DeviceSituation: Hashable, Sendable {
    /// The app's state.
    public var app = AppState.background
    /// Whether the screen is locked; no app is visible then.
    public var isLocked = false
    /// The user's languages, in order of preference.
    public var languages = ["en"]
    /// The user's permission for the app's notifications.
    public var settings = NotificationSettings()
    /// The user's style for the app's alerts.
    public var style = AlertStyle.banner
    /// The categories that the app has registered; nil for those of its bundle.
    public var categories: [NotificationCategory]?
    /// Whether a Focus, or Do Not Disturb, is on.
    public var isFocused = false
    /// Whether the mute switch is on.
    public var isMuted = false
    /// Whether there is a snapshot of the app's last screen.
    public var hasSnapshot = false
    /// The app's notifications on the screen.
    public var shown: [ShownNotification] = []
    /// The Live Activity on the screen.
    public var activity: ShownActivity?
    /// The time, in UNIX seconds.
    public var now: Double

    /// Creates the situation of an unlocked device in English, with the app in the background.
    public init(now: Double) {
        self.now = now
    }
}
