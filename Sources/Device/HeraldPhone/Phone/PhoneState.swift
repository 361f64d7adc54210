import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel

/// The state of a simulated device that is kept over restarts, except bundles.
struct PhoneState: Codable, Hashable, Sendable {
    struct App: Codable, Hashable, Sendable {
        var information: AppInformation
        /// The order of installation.
        var number = 0
        /// The user's permission; nil until the user has answered.
        ///
        /// The app is not registered before.
        var permission: NotificationSettings?
        /// The user's style for its alerts.
        var style = AlertStyle.banner
        /// The categories that it registered; nil for those of its bundle.
        var categories: [NotificationCategory]?
        /// The confirmed value of ``Phone/isEnabled(_:)``, nil from a change until the service has confirmed it.
        ///
        /// A new registration is enabled.
        var isEnabledAtService: Bool? = true
        var badge = 0
        var state = AppState.notRunning
        /// Whether there is a snapshot of its last screen.
        var hasSnapshot = false
        /// Device tokens by topic, in lower-case hex.
        var tokens: [String: String] = [:]
        /// The reason why the service does not register it.
        var refused: String?
        var openedWith: Data?
        var launchImage: String?
        /// The newest silent notification since the user ended the app; it is delivered when the app is opened.
        var held: Arrival?
        /// The user's responses that it has not heard, oldest first; nil if it was never on the local socket.
        var unheard: [Response]?

        var topic: Topic { information.topic }
    }

    /// A subscription of an app to a channel.
    struct Channel: Codable, Hashable, Sendable {
        let topic: Topic
        /// In base64.
        let id: String
        /// Whether the app or its user subscribed; else a Live Activity did, as long as it is on the screen.
        var isAsked = false
        /// The reason why the service refuses it.
        var refused: String?
        /// The `apns-unique-id` of the newest broadcast; the service sends that one again on a new connection.
        var newest: String?

        var channel: DeviceChannel? { DeviceChannel(id, of: topic) }
    }

    /// A notification or a broadcast that has arrived.
    struct Arrival: Codable, Hashable, Sendable {
        var topic: Topic
        /// The channel of a broadcast, in base64; nil for a notification.
        var channel: String?
        /// The `apns-id`; of a broadcast, the `apns-unique-id`.
        var apnsID: String?
        var payload: Data
        var pushType: PushType?
        var collapseID: String?
        /// UNIX seconds.
        var time: Double
        var priority: Priority?
        /// The identifier of a local notification; nil for a remote one.
        var local: String?
        /// The time at which a local notification was due, in UNIX seconds.
        var due: Double?

        /// The identifier that people know: the `apns-id`, or that of a local notification.
        var id: String? { apnsID ?? local }
        /// The identifier of its display record; nil if it has none.
        var recordID: String? { apnsID ?? local.map { DisplayRecord.localID($0, topic, due ?? time) } }
    }

    /// A response of the user to a notification.
    struct Response: Codable, Hashable, Sendable {
        var arrival: Arrival
        /// The button; nil if the user opened the app by the notification.
        var action: String?
        var text: String?
    }

    /// A notification on the screen.
    struct Shown: Codable, Hashable, Sendable {
        var view: PhoneSnapshot.Notification
        /// The app; the topic of the view may have a suffix.
        var app: Topic
        var arrival: Arrival
        var launchImage: String?
        /// Whether the text that opens the app is the device's own word.
        var opensWithOwnWord = false
    }

    /// A Live Activity on the screen.
    struct Activity: Codable, Hashable, Sendable {
        var view: PhoneSnapshot.Activity
        /// The app; the topic of the view may have a suffix.
        var app: Topic
        /// The `timestamp` of its content.
        var timestamp: Double
        /// The channel whose broadcasts change it (`input-push-channel` of its start), in base64.
        var channel: String?
    }

    /// An app whose removal the service has not confirmed.
    struct Removal: Codable, Hashable, Sendable {
        var topic: Topic
        var environment: PushEnvironment?
    }

    var languages = ["en"]
    var isLocked = false
    var hasNetwork = true
    var isSaving = false
    var isMuted = false
    var isFocused = false
    /// The seconds by which the device's clock is ahead of the machine's.
    var clockAhead = 0.0
    /// The last look at the device's clock before this state was written, in UNIX seconds.
    ///
    /// A clock that was set back behind it while the device was off is noticed at the next start.
    var lastTime: Double?
    /// The device's time zone; nil for the machine's.
    var timeZone: String?
    var foreground: Topic?
    var apps: [App] = []
    var channels: [Channel] = []
    var notifications = NotificationList()
    var activities = LiveActivities()
    var pending = PendingNotifications()
    /// The unfinished runs of programs and of apps on the local socket, oldest first.
    var runs: [PhoneRun] = []
    var removals: [Removal] = []
    /// Removed apps whose files are not deleted yet.
    var deletions: [Topic] = []
    var seen = SeenNotifications()
    /// The last number that was assigned.
    var lastNumber = 0

    /// Unlocks the screen; the lock screen's alerts are only in the list then.
    mutating func unlock() {
        isLocked = false
        notifications.hideLockAlerts()
    }
}

/// A run of a program because of a notification or of news, or of an app on the local socket because of a notification.
struct PhoneRun: Codable, Hashable, Sendable {
    /// The number that identifies the run.
    var number: Int
    /// The app; not the topic of the notification, which may have a suffix.
    var app: Topic
    var event: ProgramEvent
    /// The notification; nil for an app that was opened by its icon, and for news.
    var arrival: PhoneState.Arrival?
    /// The members of the news (``AppMessage/news``), for a program that hears of it.
    var news: JSON.Object?
    var state: AppState
    var language: String?
    var action: String?
    var text: String?
    /// The deadline of an app on the local socket, in UNIX seconds; nil for a program.
    var deadline: Double?
}

/// An event that a program of the bundle handles: the file of that name in `Programs`.
enum ProgramEvent: String, Codable, Hashable, Sendable, CaseIterable {
    /// A notification has arrived.
    case receive
    /// The user opened the app.
    case open
    /// The user pressed a button of a notification's category.
    case action
    /// A silent notification wakes the app.
    case background
    /// A notification can be changed before it is shown.
    case service
    /// The user has answered the app's permission request.
    case permission
    /// The user has changed the permission.
    case settings
    /// The app has a device token.
    case token
    /// The service does not register the app.
    case refused
    /// The user has changed the languages.
    case languages
}
