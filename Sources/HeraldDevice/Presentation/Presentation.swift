/// What happens on a device because of one notification.
public struct Presentation: Hashable, Sendable {
    /// The texts that are shown.
    public struct Alert: Hashable, Sendable {
        /// The first line.
        public var title: String?
        /// The second line.
        public var subtitle: String?
        /// The text.
        public var body: String?

        /// Whether there is nothing to read in it.
        public var isEmpty: Bool {
            [title, subtitle, body].allSatisfy { $0?.isEmpty ?? true }
        }
    }

    /// Where a text is shown.
    public enum Place: String, Hashable, Sendable, Codable {
        /// Over what the user looks at, and in the list of notifications.
        case banner
        /// On the locked screen, which lights up.
        case lockScreen = "lock screen"
        /// In the list only, without light.
        case list
    }

    /// What is heard.
    public struct Sound: Hashable, Sendable {
        /// The file, or `default`.
        public var name: String
        /// Whether it passes the mute switch and a Focus.
        public var isCritical = false
        /// From 0 to 1; only critical sounds have one.
        public var volume: Double?
    }

    /// With what picture the app opens.
    public enum LaunchImage: Hashable, Sendable {
        /// The one that the payload names.
        case named(String)
        /// The picture of how the app was left.
        case snapshot
        /// The one that Info.plist names.
        case informationFile(String)
        /// `Default.png`.
        case standard
    }

    /// What becomes of a Live Activity.
    public struct Activity: Hashable, Sendable {
        /// What it is afterwards.
        public enum State: String, Hashable, Sendable, Codable {
            /// It is shown and current.
            case active
            /// It is shown as outdated.
            case stale
            /// It shows its last content until it goes.
            case ended
            /// It is gone.
            case dismissed
        }

        /// `start`, `update` or `end`.
        public var event: String
        /// What it is afterwards.
        public var state: State
        /// The content that it shows; nil leaves what it shows.
        public var content: PayloadValue?
        /// When it becomes outdated, in UNIX seconds.
        public var staleDate: Double?
        /// When it goes, in UNIX seconds; nil while it has not ended.
        public var dismissalDate: Double?
    }

    /// Why something that was asked for does not happen, or nothing does.
    public enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
        /// The payload is not a JSON object.
        case unreadable = "the payload is not a JSON object"
        /// There is nothing under `aps`.
        case noAps = "the payload has no aps dictionary"
        /// The kind of push is none that the system shows.
        case notShown = "the system shows nothing of this push type and hands it to the app's extension"
        /// The app is in the foreground.
        case foreground = "the app is in the foreground: it gets the payload, and decides itself"
        /// It only wakes the app.
        case silent = "it is silent"
        /// There is no alert.
        case noText = "it has no text to show"
        /// The alert is neither a string nor a dictionary.
        case badAlert = "aps.alert is neither a string nor a dictionary"
        /// The user switched texts off.
        case alertsOff = "the user switched alerts off"
        /// The user switched numbers off.
        case badgesOff = "the user switched badges off"
        /// The user switched sounds off.
        case soundsOff = "the user switched sounds off"
        /// The device is muted.
        case muted = "the device is muted"
        /// A Focus is on.
        case focused = "a Focus is on"
        /// It is passive.
        case passive = "a passive notification makes no sound"
        /// The sound's file is not there.
        case noSuchSound = "the bundle has no such sound file: the default sound is played"
        /// The sound's file cannot be played.
        case unplayableSound = "the sound file cannot be played: the default sound is"
        /// The app did not declare that it wants to be woken.
        case noBackgroundMode = "the app is not woken: UIBackgroundModes lacks remote-notification"
        /// The user ended the app.
        case endedByUser = "the app is not woken: the user ended it"
        /// There is no text that a service extension could change.
        case nothingToChange = "the service extension does not run: there is no alert to change"
        /// The activity is not there.
        case noActivity = "there is no Live Activity to change"
        /// Something newer is shown.
        case olderThanShown = "its timestamp is older than what the Live Activity shows"
        /// The event is missing or unknown.
        case badEvent = "aps.event is none of start, update and end"
        /// The start lacks what an activity is made of.
        case incompleteStart = "a start needs attributes-type, attributes and content-state"
    }

    /// The language that texts are in; nil where the app has none.
    public var language: String?
    /// The texts; nil where none are shown.
    public var alert: Alert?
    /// Where they are shown.
    public var place: Place?
    /// The buttons of an alert on an unlocked screen: Close, and the one that opens the app.
    public var buttons: [String] = []
    /// The text beside the slider of an alert on a locked screen.
    public var slider: String?
    /// The buttons of its category.
    public var actions: [NotificationCategory.Action] = []
    /// The number on the icon from now on, 0 for none; nil leaves it.
    public var badge: Int?
    /// What is heard.
    public var sound: Sound?
    /// With what picture the app opens from the alert.
    public var launchImage: LaunchImage?
    /// For how many seconds the app runs in the background; nil where it is not woken.
    public var backgroundSeconds: Int?
    /// For how many seconds the app's service extension may change what is shown, before the original is.
    public var extensionSeconds: Int?
    /// Whether the app is handed the payload, and nothing else happens.
    public var isDeliveredToApp = false
    /// The group that it is shown in.
    public var thread: String?
    /// Its category.
    public var category: String?
    /// How much it may interrupt: `passive`, `active`, `time-sensitive` or `critical`; nil where nothing is shown.
    public var interruption: String?
    /// Which of the shown notifications it takes the place of.
    public var replaces: String?
    /// What becomes of a Live Activity.
    public var activity: Activity?
    /// Why something does not happen.
    public var reasons: [Reason] = []

    /// Whether the user sees a text.
    public var isShown: Bool { alert != nil }

    /// Nothing at all.
    public init() {}
}
