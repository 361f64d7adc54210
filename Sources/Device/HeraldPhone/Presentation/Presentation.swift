public import HeraldJSON

/// The effects of one notification on a device.
public struct Presentation: Hashable, Sendable {
    /// The texts of an alert.
    public struct Alert: Hashable, Sendable {
        /// The first line.
        public var title: String?
        /// The second line.
        public var subtitle: String?
        /// The text.
        public var body: String?

        /// Whether all texts are empty.
        public var isEmpty: Bool {
            [title, subtitle, body].allSatisfy { $0?.isEmpty ?? true }
        }
    }

    /// The place where an alert is shown.
    public enum Place: String, Hashable, Sendable, Codable {
        /// Over the unlocked screen, as a banner or an alert (``AlertStyle``), and in the list of notifications.
        case banner
        /// The lock screen, which lights up.
        case lockScreen = "lock screen"
        /// Only the list of notifications; the screen stays dark.
        case list
    }

    /// The sound of a notification.
    public struct Sound: Hashable, Sendable {
        /// The file, or `default`.
        public var name: String
        /// Whether it overrides the mute switch and a Focus.
        public var isCritical = false
        /// The volume from 0 to 1; only for critical sounds.
        public var volume: Double?
    }

    /// The image with which the app opens.
    public enum LaunchImage: Hashable, Sendable {
        /// The image that the payload names.
        case named(String)
        /// The snapshot of the app's last screen.
        case snapshot
        /// The image that Info.plist names.
        case informationFile(String)
        /// `Default.png`.
        case standard
    }

    /// The change of a Live Activity.
    public struct Activity: Codable, SnakeCased, Hashable, Sendable {
        /// The state after the change.
        public enum State: String, Hashable, Sendable, Codable {
            /// It is shown and current.
            case active
            /// It is shown as outdated.
            case stale
            /// It shows its last content until it is removed.
            case ended
            /// It was removed.
            case dismissed
        }

        /// `start`, `update` or `end`.
        public var event: String
        /// The state after the change.
        public var state: State
        /// The new content; nil leaves the content unchanged.
        public var contentState: JSON?
        /// The time at which it becomes outdated, in UNIX seconds.
        public var staleDate: Double?
        /// The time at which it is removed, in UNIX seconds; nil while it has not ended.
        public var dismissalDate: Double?
    }

    /// A reason why something does not happen, in words.
    public enum Reason: String, Hashable, Sendable, CaseIterable, Codable {
        case unreadable = "the payload is not a JSON object"
        case tooDeep = "the payload is nested deeper than 500 levels"
        case noAps = "the payload has no aps dictionary"
        case notShown = "the system does not show this push type, and delivers it to the app's extension"
        case foreground = "the app is in the foreground: it gets the payload and decides itself"
        /// It is silent: it only wakes the app.
        case silent = "it is silent"
        case noText = "it has no text to show"
        case badAlert = "aps.alert is neither a string nor a dictionary"
        case alertsOff = "the user switched alerts off"
        case noStyle = "the user's alert style for the app is none"
        case badBadge = "aps.badge is not a whole number from 0 to 999999999: it is ignored"
        case badgesOff = "the user switched badges off"
        case soundsOff = "the user switched sounds off"
        case muted = "the device is muted"
        case focused = "a Focus is on"
        case passive = "a passive notification makes no sound"
        case noSuchSound = "the bundle has no such sound file: the default sound is played"
        case unplayableSound = "the sound file cannot be played: the default sound is played"
        /// The volume of a critical sound is not a number from 0 to 1; the nearest is played.
        case badVolume = "the volume of the sound is not a number from 0 to 1"
        case noBackgroundMode = "the app is not woken: UIBackgroundModes lacks remote-notification"
        case endedByUser = "the app is not woken: the user ended it"
        case nothingToChange = "the service extension does not run: there is no alert to change"
        case noActivity = "there is no Live Activity to change"
        case olderThanShown = "its timestamp is older than what the Live Activity shows"
        case badTimestamp = "aps.timestamp is not a time in UNIX seconds: it is ignored"
        case badStaleDate = "aps.stale-date is not a time in UNIX seconds: it is ignored"
        case badDismissalDate = "aps.dismissal-date is not a time in UNIX seconds: it is ignored"
        case badEvent = "aps.event is none of start, update and end"
        case badChannel = "aps.input-push-channel is not a channel, 24 characters of base64: it is ignored"
        case startByBroadcast = "a broadcast cannot start a Live Activity"
        case incompleteStart = "a start needs attributes-type, attributes and content-state"
    }

    /// The language of the texts; nil if the app has none.
    public var language: String?
    /// The alert; nil if none is shown.
    public var alert: Alert?
    /// The place of the alert.
    public var place: Place?
    /// The user's style for the app's alerts; nil if none is shown.
    public var style: AlertStyle?
    /// The buttons of an alert on an unlocked screen: Close, and the one that opens the app.
    public var buttons: [String] = []
    /// The text on the slider of an alert on a locked screen.
    public var slider: String?
    /// Whether the text that opens the app is the device's own word, not the payload's `action-loc-key`.
    var opensWithOwnWord = false
    /// The buttons of its category.
    public var actions: [NotificationCategory.Action] = []
    /// The new badge, 0 for none; nil leaves it unchanged.
    public var badge: Int?
    /// The sound.
    public var sound: Sound?
    /// The image with which the app opens from the alert.
    public var launchImage: LaunchImage?
    /// The time limit of the app's background run, in seconds; nil if the app is not woken.
    public var backgroundSeconds: Int?
    /// The time limit of the app's service extension, in seconds; nil if it does not run.
    public var extensionSeconds: Int?
    /// Whether the app gets the payload, and nothing else happens.
    public var isDeliveredToApp = false
    /// The group of notifications that it belongs to.
    public var thread: String?
    /// Its category.
    public var category: String?
    /// The interruption level: `passive`, `active`, `time-sensitive` or `critical`; nil if nothing is shown.
    public var interruption: String?
    /// The identifier of the notification that it replaces.
    public var replaces: String?
    /// The change of a Live Activity.
    public var activity: Activity?
    /// The reasons why something does not happen.
    public var reasons: [Reason] = []

    /// Whether an alert is shown.
    public var isShown: Bool { alert != nil }

    /// Creates a presentation that does nothing.
    public init() {}
}

extension Presentation: Encodable, SnakeCased {
    private enum CodingKeys: String, CodingKey {
        case shown, place, style, localization, title, subtitle, body, buttons, slider, actions, badge, sound, critical,
            volume
        case launchImage, backgroundLaunch, seconds, extensionSeconds, deliveredToApp
        case thread, category, interruption, replaces, activity, reasons
    }

    /// Encodes one flat object.
    ///
    /// `badge` is a number or `unchanged`, `sound` a name or null; other members may be missing.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isShown, forKey: .shown)
        try container.encodeIfPresent(place, forKey: .place)
        try container.encodeIfPresent(style, forKey: .style)
        try container.encodeIfPresent(language, forKey: .localization)
        try container.encodeIfPresent(alert?.title, forKey: .title)
        try container.encodeIfPresent(alert?.subtitle, forKey: .subtitle)
        try container.encodeIfPresent(alert?.body, forKey: .body)
        try container.encode(buttons, forKey: .buttons)
        try container.encodeIfPresent(slider, forKey: .slider)
        if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
        if let badge {
            try container.encode(badge, forKey: .badge)
        } else {
            try container.encode("unchanged", forKey: .badge)
        }
        try container.encode(sound?.name, forKey: .sound)
        if sound?.isCritical == true { try container.encode(true, forKey: .critical) }
        try container.encodeIfPresent(sound?.volume, forKey: .volume)
        try container.encodeIfPresent(launchImage?.description, forKey: .launchImage)
        try container.encode(backgroundSeconds != nil, forKey: .backgroundLaunch)
        try container.encodeIfPresent(backgroundSeconds, forKey: .seconds)
        try container.encodeIfPresent(extensionSeconds, forKey: .extensionSeconds)
        try container.encode(isDeliveredToApp, forKey: .deliveredToApp)
        try container.encodeIfPresent(thread, forKey: .thread)
        try container.encodeIfPresent(category, forKey: .category)
        try container.encodeIfPresent(interruption, forKey: .interruption)
        try container.encodeIfPresent(replaces, forKey: .replaces)
        try container.encodeIfPresent(activity, forKey: .activity)
        try container.encode(reasons, forKey: .reasons)
    }
}

extension Presentation.LaunchImage: CustomStringConvertible {
    /// The file, or a description.
    public var description: String {
        switch self {
        case .named(let name), .informationFile(let name): name
        case .snapshot: "the previous snapshot"
        case .standard: "Default.png"
        }
    }
}
