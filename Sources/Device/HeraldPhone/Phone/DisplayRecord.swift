public import HeraldJSON
public import HeraldModel

/// The record of what a simulated device showed of one notification, in which state, and why something was not shown.
///
/// Its JSON is the output of `herald agent shown`, of the screen's `GET /api/shown/<apns-id>` and of the local socket's
/// `shown`.
public struct DisplayRecord: Codable, SnakeCased, Hashable, Sendable {
    /// The badge of an app's icon, before and after.
    public struct Badge: Codable, Hashable, Sendable {
        /// The number before; 0 for none.
        public var before: Int
        /// The number after.
        public var after: Int
    }

    /// The outcome of an app's service program.
    public enum ExtensionOutcome: String, Codable, Hashable, Sendable {
        /// It returned another payload, which was shown.
        case changed
        /// It failed, and the original was shown.
        case failed
        /// It took too long, and the original was shown.
        case timedOut = "timed out"
    }

    /// The outcome of an app's background run.
    public enum BackgroundOutcome: String, Codable, Hashable, Sendable {
        /// There was new data.
        case newData = "new data"
        /// There was no new data.
        case noData = "no data"
        /// It failed.
        case failed
        /// It took too long.
        case timedOut = "timed out"
    }

    /// The user's response to the notification.
    public struct Response: Codable, Hashable, Sendable {
        /// A kind of response.
        public enum Kind: String, Codable, Hashable, Sendable {
            /// The user opened the app by it.
            case opened
            /// The user closed it.
            case closed
            /// The user pressed a button of its category.
            case acted
        }

        /// The kind.
        public var kind: Kind
        /// The identifier of the button.
        @ExplicitNull public var action: String?
        /// The text that the user entered.
        @ExplicitNull public var text: String?

        init(kind: Kind, action: String? = nil, text: String? = nil) {
            self.kind = kind
            self.action = action
            self.text = text
        }
    }

    /// Its `apns-id`, or the `apns-unique-id` of a broadcast; empty if it has none.
    public var apnsID: String
    /// The channel of a broadcast (`apns-channel-id`); nil for others.
    @ExplicitNull public var channel: String?
    /// The identifier of a local notification; nil for a remote one.
    @ExplicitNull public var local: String?
    /// The time at which a local notification was due, as `2026-11-21T14:30:00.000Z`.
    @ExplicitNull public var due: String?
    /// The app that it is for.
    public var topic: Topic
    /// The time of its arrival, as `2026-11-21T14:30:00.000Z`.
    public var received: String
    /// Its `apns-push-type`.
    @ExplicitNull public var pushType: PushType?
    /// Its `apns-priority`.
    @ExplicitNull public var priority: Priority?
    /// Its payload as it arrived: JSON in a text, so that numbers and repeated keys stay as they were sent.
    @ExplicitNull public var payload: String?
    /// The user's languages at that time, in order of preference.
    public var languages: [String] = []
    /// The language of the texts; nil if the app has none.
    @ExplicitNull public var language: String?
    /// The app's state.
    public var state: AppState
    /// Whether the screen was locked.
    public var locked: Bool = false
    /// Whether a Focus was on.
    public var focus: Bool = false
    /// Whether the device was muted.
    public var muted: Bool = false
    /// Whether an alert was shown.
    public var shown: Bool = false
    /// The place of the alert.
    @ExplicitNull public var place: Presentation.Place?
    /// The user's style for the app's alerts; nil if none was shown.
    @ExplicitNull public var style: AlertStyle?
    /// The first line.
    @ExplicitNull public var title: String?
    /// The second line.
    @ExplicitNull public var subtitle: String?
    /// The text.
    @ExplicitNull public var body: String?
    /// The buttons of an alert on an unlocked screen.
    public var buttons: [String] = []
    /// The text on the slider of an alert on a locked screen.
    @ExplicitNull public var slider: String?
    /// The buttons of its category.
    public var actions: [NotificationCategory.Action] = []
    /// The badge.
    public var badge: Badge
    /// The sound: a file, or `default`.
    @ExplicitNull public var sound: String?
    /// Whether the sound overrides the mute switch and a Focus.
    public var critical: Bool = false
    /// The volume of a critical sound, from 0 to 1.
    @ExplicitNull public var volume: Double?
    /// The image with which the app opens from it.
    @ExplicitNull public var launchImage: String?
    /// Whether something of the app runs in the background for it: a program of its bundle, or the app on the local socket.
    public var backgroundLaunch: Bool = false
    /// Whether the app was in the foreground and got the payload, and nothing was shown.
    public var deliveredToApp: Bool = false
    /// The group of notifications that it belongs to.
    @ExplicitNull public var thread: String?
    /// Its category.
    @ExplicitNull public var category: String?
    /// The interruption level.
    @ExplicitNull public var interruption: String?
    /// The `apns-id`, or the local identifier, of the notification that it replaced.
    @ExplicitNull public var replaces: String?
    /// The change of a Live Activity.
    @ExplicitNull public var activity: Presentation.Activity?
    /// The reasons why something did not happen, in words.
    public var because: [String] = []
    /// The outcome of the app's service program; nil if none ran.
    @ExplicitNull public var `extension`: ExtensionOutcome?
    /// The outcome of the app's background run; nil if there was none, or it has not ended.
    @ExplicitNull public var background: BackgroundOutcome?
    /// The `apns-id`, or the local identifier, of the notification that replaced it.
    @ExplicitNull public var replacedBy: String?
    /// The user's response.
    @ExplicitNull public var response: Response?

    /// Creates a record of a notification that is not shown yet.
    package init(apnsID: String, topic: Topic, received: String, state: AppState, badge: Int) {
        self.apnsID = apnsID
        self.topic = topic
        self.received = received
        self.state = state
        self.badge = Badge(before: badge, after: badge)
    }
}

extension DisplayRecord {
    /// The identifier in the display log: the `apns-id`, or the name of one occasion of a local notification; empty for a
    /// remote one without an `apns-id`.
    package var id: String {
        local.flatMap { local in due.map { Self.localID(local, topic, due: $0) } } ?? apnsID
    }

    /// The ``id`` of a local notification that is due at a time in UNIX seconds.
    static func localID(_ name: String, _ topic: Topic, _ due: Double) -> String {
        localID(name, topic, due: WallTime(unixSeconds: due).rfc3339)
    }

    private static func localID(_ name: String, _ topic: Topic, due: String) -> String { "\(topic) \(name) \(due)" }

    /// Copies a presentation into the record.
    mutating func take(_ presentation: Presentation) {
        language = presentation.language
        shown = presentation.isShown
        place = presentation.place
        style = presentation.style
        title = presentation.alert?.title
        subtitle = presentation.alert?.subtitle
        body = presentation.alert?.body
        buttons = presentation.buttons
        slider = presentation.slider
        actions = presentation.actions
        badge.after = presentation.badge ?? badge.before
        sound = presentation.sound?.name
        critical = presentation.sound?.isCritical ?? false
        volume = presentation.sound?.volume
        launchImage = presentation.launchImage?.description
        backgroundLaunch = presentation.backgroundSeconds != nil
        deliveredToApp = presentation.isDeliveredToApp
        thread = presentation.thread
        category = presentation.category
        interruption = presentation.interruption
        activity = presentation.activity
        because = presentation.reasons.map(\.rawValue)
    }

    /// The record in words, one fact per line: `shown on the lock screen: Game Request: Bob wants to play`.
    public var words: [String] {
        var lines: [String] = []
        let text = [title, subtitle, body].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ": ")
        switch place {
        case .banner?: lines.append("shown as \(style == .alert ? "an alert" : "a banner"): \(text)")
        case .lockScreen?: lines.append("shown on the lock screen: \(text)")
        case .list?: lines.append("shown in the list of notifications: \(text)")
        case nil:
            if let activity {
                lines.append("Live Activity:  \(activity.event), now \(activity.state.rawValue)")
            } else if deliveredToApp {
                lines.append("delivered to the app; nothing is shown")
            } else {
                lines.append("nothing is shown")
            }
        }
        if badge.after != badge.before {
            lines.append(badge.after == 0 ? "the badge is removed" : "the badge is \(badge.after)")
        }
        if let sound { lines.append("the sound is \(sound)") }
        if backgroundLaunch { lines.append("the app runs in the background") }
        switch `extension` {
        case .changed?: lines.append("the app's service program changed it")
        case .failed?: lines.append("the app's service program failed: the original is shown")
        case .timedOut?: lines.append("the app's service program took too long: the original is shown")
        case nil: break
        }
        return lines + because.map { "because \($0)" }
    }
}
