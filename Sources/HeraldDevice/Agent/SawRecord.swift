public import HeraldModel

/// What the user saw of one notification: what was shown, in which language and state, and why something was not.
///
/// Its JSON is the answer of `herald agent saw`, of the screen's `GET /api/saw/<apns-id>` and of the local socket's `saw`.
public struct SawRecord: Codable, Hashable, Sendable {
    /// A number on an icon that may have changed.
    public struct Badge: Codable, Hashable, Sendable {
        /// The number before; 0 for none.
        public var before: Int
        /// The number after.
        public var after: Int
    }

    /// What an app's service program did with the notification.
    public enum ExtensionOutcome: String, Codable, Hashable, Sendable {
        /// It returned another payload, which was shown.
        case changed
        /// It failed, and the original was shown.
        case failed
        /// It took too long, and the original was shown.
        case timedOut = "timed out"
    }

    /// How an app's run in the background ended.
    public enum BackgroundOutcome: String, Codable, Hashable, Sendable {
        /// It found something new.
        case newData = "new data"
        /// There was nothing new.
        case noData = "no data"
        /// It failed.
        case failed
        /// It took too long, and was ended.
        case timedOut = "timed out"
    }

    /// What the user did with the notification.
    public struct Answer: Codable, Hashable, Sendable {
        /// What it was.
        public enum Deed: String, Codable, Hashable, Sendable {
            /// The app was opened by it.
            case opened
            /// It was taken away.
            case closed
            /// A button of its category was pressed.
            case acted
        }

        /// What it was.
        public var did: Deed
        /// The button.
        @OrNull public var action: String?
        /// The text that the user wrote.
        @OrNull public var text: String?
    }

    /// Its `apns-id`.
    public var apnsID: String
    /// The app that it is for.
    public var topic: Topic
    /// When it came, as `2026-11-21T14:30:00.000Z`.
    public var received: String
    /// Its `apns-push-type`.
    @OrNull public var pushType: PushType?
    /// The user's languages at that time, the dearest first.
    public var languages: [String]
    /// The language that the texts are in; nil where the app has none.
    @OrNull public var language: String?
    /// Where the app was.
    public var state: AppState
    /// Whether the screen was locked.
    public var locked: Bool
    /// Whether a Focus was on.
    public var focus: Bool
    /// Whether the device was muted.
    public var muted: Bool
    /// Whether the user saw a text.
    public var shown: Bool
    /// Where.
    @OrNull public var place: Presentation.Place?
    /// The first line.
    @OrNull public var title: String?
    /// The second line.
    @OrNull public var subtitle: String?
    /// The text.
    @OrNull public var body: String?
    /// The buttons of an alert on an unlocked screen.
    public var buttons: [String]
    /// The text beside the slider of an alert on a locked screen.
    @OrNull public var slider: String?
    /// The buttons of its category.
    public var actions: [NotificationCategory.Action]
    /// The number on the icon.
    public var badge: Badge
    /// What was heard: a file, or `default`.
    @OrNull public var sound: String?
    /// Whether the sound passes the mute switch and a Focus.
    public var critical: Bool
    /// The loudness of a critical sound, from 0 to 1.
    @OrNull public var volume: Double?
    /// With what picture the app opens from it.
    @OrNull public var launchImage: String?
    /// Whether the app was woken to run in the background.
    public var backgroundLaunch: Bool
    /// Whether the app, being in the foreground, was handed the payload and nothing was shown.
    public var deliveredToApp: Bool
    /// The group that it is shown in.
    @OrNull public var thread: String?
    /// Its category.
    @OrNull public var category: String?
    /// How much it may interrupt.
    @OrNull public var interruption: String?
    /// The `apns-id` of the notification whose place it took.
    @OrNull public var replaces: String?
    /// What it did to a Live Activity.
    @OrNull public var activity: Presentation.Activity?
    /// Why something that the payload asked for did not happen, or nothing did; in words.
    public var because: [String]
    /// What the app's service program did; nil where none ran.
    @OrNull public var `extension`: ExtensionOutcome?
    /// How the app's run in the background ended; nil where there was none, or it has not ended.
    @OrNull public var background: BackgroundOutcome?
    /// The `apns-id` of the notification that took its place.
    @OrNull public var replacedBy: String?
    /// What the user did with it.
    @OrNull public var answer: Answer?

    private enum CodingKeys: String, CodingKey {
        case apnsID = "apns_id"
        case topic, received
        case pushType = "push_type"
        case languages, language, state, locked, focus, muted, shown, place, title, subtitle, body, buttons, slider
        case actions, badge, sound, critical, volume
        case launchImage = "launch_image"
        case backgroundLaunch = "background_launch"
        case deliveredToApp = "delivered_to_app"
        case thread, category, interruption, replaces, activity, because, `extension`, background
        case replacedBy = "replaced_by"
        case answer
    }

    /// A record of a notification of which nothing was shown yet.
    package init(apnsID: String, topic: Topic, received: String, state: AppState, badge: Int) {
        self.apnsID = apnsID
        self.topic = topic
        self.received = received
        self.state = state
        self.badge = Badge(before: badge, after: badge)
        pushType = nil
        languages = []
        language = nil
        locked = false
        focus = false
        muted = false
        shown = false
        place = nil
        title = nil
        subtitle = nil
        body = nil
        buttons = []
        slider = nil
        actions = []
        sound = nil
        critical = false
        volume = nil
        launchImage = nil
        backgroundLaunch = false
        deliveredToApp = false
        thread = nil
        category = nil
        interruption = nil
        replaces = nil
        activity = nil
        because = []
        `extension` = nil
        background = nil
        replacedBy = nil
        answer = nil
    }
}
