public import HeraldModel

/// A notification as it came to the device.
public struct IncomingNotification: Hashable, Sendable {
    /// The payload's bytes.
    public var payload: [UInt8]
    /// Its `apns-push-type`; nil is taken as ``HeraldModel/PushType/alert``.
    public var pushType: PushType?
    /// Its `apns-collapse-id`.
    public var collapseID: String?

    /// A notification with these.
    public init(payload: [UInt8], pushType: PushType? = nil, collapseID: String? = nil) {
        self.payload = payload
        self.pushType = pushType
        self.collapseID = collapseID
    }
}

/// Where an app is when a notification for it comes.
public enum AppState: String, Hashable, Sendable, CaseIterable, Codable {
    /// The user looks at it.
    case foreground
    /// It is there, and the user looks at something else.
    case background
    /// It is not there; the system may start it.
    case notRunning = "not running"
    /// The user ended it; the system does not start it until the user has.
    case endedByUser = "ended by the user"
}

/// What the user lets an app's notifications do.
public struct NotificationSettings: Hashable, Sendable, Codable {
    /// Whether texts are shown.
    public var alerts = true
    /// Whether the icon has a number.
    public var badges = true
    /// Whether sounds are played.
    public var sounds = true

    /// Everything on.
    public init() {}
}

/// A notification that the user can still see.
public struct ShownNotification: Hashable, Sendable {
    /// By what it is known.
    public var id: String
    /// Its collapse identifier.
    public var collapseID: String?

    /// A notification that is shown.
    public init(id: String, collapseID: String? = nil) {
        self.id = id
        self.collapseID = collapseID
    }
}

/// A Live Activity that the user can see.
public struct ShownActivity: Hashable, Sendable {
    /// The `timestamp` of what it shows, in UNIX seconds.
    public var timestamp: Double

    /// An activity that shows what was sent with this timestamp.
    public init(timestamp: Double) {
        self.timestamp = timestamp
    }
}

/// Everything about a device that decides what becomes of a notification there.
public struct DeviceSituation: Hashable, Sendable {
    /// Where the app is.
    public var app = AppState.background
    /// Whether the screen is locked; then the user looks at no app.
    public var isLocked = false
    /// The user's languages, the dearest first.
    public var languages = ["en"]
    /// What the user lets the app's notifications do.
    public var settings = NotificationSettings()
    /// Whether a Focus, or Do Not Disturb, is on.
    public var isFocused = false
    /// Whether the mute switch is on.
    public var isMuted = false
    /// Whether there is a picture of how the app was left.
    public var hasSnapshot = false
    /// The app's notifications that are shown already.
    public var shown: [ShownNotification] = []
    /// The Live Activity that is shown already.
    public var activity: ShownActivity?
    /// The time, in UNIX seconds.
    public var now: Double

    /// An unlocked device of somebody who reads English, with the app in the background.
    public init(now: Double) {
        self.now = now
    }
}
