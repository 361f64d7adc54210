import Foundation
import HeraldModel

/// What a device knows when it is switched on again: everything that ``Phone`` decides with and that is not in bundles.
struct PhoneState: Codable, Hashable, Sendable {
    /// An app.
    struct App: Codable, Hashable, Sendable {
        var information: AppInformation
        /// Where it stood in the order of installation.
        var number = 0
        /// What the user lets it do; nil until they said so, before which it is not registered.
        var permission: NotificationSettings?
        /// What the service was last known to think of ``isEnabled``; a new registration is enabled.
        var isEnabledAtService = true
        var badge = 0
        var state = AppState.notRunning
        /// Whether there is a picture of how it was left.
        var hasSnapshot = false
        /// Device tokens by topic, lower-case hex.
        var tokens: [String: String] = [:]
        /// Why the service does not register it.
        var refused: String?
        var openedWith: Data?
        var launchImage: String?
        /// The newest silent notification that came while the user had ended the app; it gets it when it is opened.
        var held: Arrival?

        var topic: Topic { information.topic }
        /// Whether any of its notifications is wanted.
        var isEnabled: Bool { permission.map { $0.alerts || $0.badges || $0.sounds } ?? true }
    }

    /// A notification as it came.
    struct Arrival: Codable, Hashable, Sendable {
        var topic: Topic
        var apnsID: String?
        var payload: Data
        var pushType: PushType?
        var collapseID: String?
        /// UNIX seconds.
        var time: Double
    }

    /// A notification that is shown.
    struct Shown: Codable, Hashable, Sendable {
        var view: PhoneSnapshot.Notification
        /// The app; the topic of the view may have a suffix.
        var app: Topic
        var arrival: Arrival
        var launchImage: String?
    }

    /// A Live Activity that is shown.
    struct Activity: Codable, Hashable, Sendable {
        var view: PhoneSnapshot.Activity
        /// The app; the topic of the view may have a suffix.
        var app: Topic
        /// The `timestamp` of what it shows.
        var timestamp: Double
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
    var foreground: Topic?
    var apps: [App] = []
    /// Newest first.
    var shown: [Shown] = []
    var banner: String?
    /// Newest first.
    var activities: [Activity] = []
    /// Programs that have not ended, and apps that have not said that they are done; oldest first.
    var runs: [PhoneRun] = []
    var removals: [Removal] = []
    /// Apps whose files are to be deleted.
    var deletions: [Topic] = []
    var seen = SeenNotifications()
    /// The last number that was given to anything.
    var lastNumber = 0

    init() {}
}

/// Something that a program, or an app on the local socket, is to do because of a notification.
struct PhoneRun: Codable, Hashable, Sendable {
    /// By what its end is reported.
    var number: Int
    /// The app; not the topic of the notification, which may have a suffix.
    var app: Topic
    var event: ProgramEvent
    /// The notification; nil for an app that was opened by its icon.
    var arrival: PhoneState.Arrival?
    var state: AppState
    var language: String?
    var action: String?
    var text: String?
    /// When an app on the socket must have said that it is done, in UNIX seconds; nil where a program does it.
    var deadline: Double?
}

/// What programs of a bundle are for; each is the file of that name in `Programs`.
package enum ProgramEvent: String, Codable, Hashable, Sendable, CaseIterable {
    /// A notification came.
    case receive
    /// The app was opened.
    case open
    /// A button of a notification's category was pressed.
    case action
    /// A silent notification wakes the app.
    case background
    /// A notification may be changed before it is shown.
    case service
}
