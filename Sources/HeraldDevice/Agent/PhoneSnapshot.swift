public import HeraldModel

/// What a device looks like at one moment: every view of it shows this and nothing else.
///
/// Its JSON is the answer of the screen's `GET /api/device` and of the local socket's `device` and `watch`; members are in
/// snake_case, times are UNIX seconds, and a member without a value is `null`.
public struct PhoneSnapshot: Codable, Hashable, Sendable {
    /// The device's identifier.
    public var device: String
    /// The service that it hangs on, as `host:port`.
    public var service: String
    /// The time.
    public var time: Double
    /// How it is connected.
    public var connection = Connection()
    /// Whether the screen is locked.
    public var locked = false
    /// The user's languages, the dearest first.
    public var languages: [String] = ["en"]
    /// The languages that any of the apps has texts in, sorted.
    public var availableLanguages: [String] = []
    /// Whether it has a network.
    public var network = true
    /// Whether it saves power.
    public var saving = false
    /// Whether the mute switch is on.
    public var muted = false
    /// Whether a Focus is on.
    public var focus = false
    /// The app that the user looks at.
    @OrNull public var foreground: Topic?
    /// The apps, by name.
    public var apps: [App] = []
    /// The apps that wait for the user's permission, in the order in which they asked.
    public var questions: [Topic] = []
    /// What is shown, newest first; 100 at most.
    public var notifications: [Notification] = []
    /// The notification that is shown over what the user looks at, until it is closed, opened or replaced.
    @OrNull public var banner: String?
    /// The Live Activities, newest first.
    public var activities: [Activity] = []
    /// The last ten sounds, newest last; a view plays those that it has not played.
    public var sounds: [Sound] = []
    /// The last hundred things that happened, newest last.
    public var log: [Line] = []

    /// A device with nothing on it.
    package init(device: String, service: String, time: Double) {
        self.device = device
        self.service = service
        self.time = time
    }

    private enum CodingKeys: String, CodingKey {
        case device, service, time, connection, locked, languages
        case availableLanguages = "available_languages"
        case network, saving, muted, focus, foreground, apps, questions, notifications, banner, activities, sounds, log
    }
}

extension PhoneSnapshot {
    /// How a device is connected.
    public struct Connection: Codable, Hashable, Sendable {
        /// One word for it.
        public enum State: String, Codable, Hashable, Sendable, CaseIterable {
            /// The service has let it in.
            case connected
            /// It tries to.
            case connecting
            /// It has no connection; ``Connection/retryIn`` says when it tries again, if it does.
            case offline
            /// The service does not let it in.
            case refused
        }

        /// One word for it.
        public var state = State.connecting
        /// Why it is not connected.
        @OrNull public var reason: String?
        /// After how many seconds it tries again.
        @OrNull public var retryIn: Double?

        /// A connection that is being made.
        package init() {
            reason = nil
            retryIn = nil
        }

        private enum CodingKeys: String, CodingKey {
            case state, reason
            case retryIn = "retry_in"
        }
    }

    /// An app on the device.
    public struct App: Codable, Hashable, Sendable {
        /// Its topic.
        public var topic: Topic
        /// The name under its icon.
        public var name: String
        /// Whether it has an icon of its own.
        public var icon = false
        /// The number on its icon; 0 for none.
        public var badge = 0
        /// Where it is.
        public var state = AppState.notRunning
        /// The environment that it is registered in; nil for the one that the service chooses.
        @OrNull public var environment: PushEnvironment?
        /// Its device token, lower-case hex.
        @OrNull public var token: String?
        /// What the user lets its notifications do; nil while that is not decided.
        @OrNull public var permission: NotificationSettings?
        /// What it asks the user to let them do.
        public var wants: [NotificationKind] = NotificationKind.allCases
        /// Why the service does not register it.
        @OrNull public var refused: String?
        /// A page that is the app, to be shown while it is open.
        @OrNull public var screenURL: String?
        /// The payload of the notification that it was opened with.
        @OrNull public var openedWith: PayloadValue?
        /// The newest notification that came to it since it is open, which is shown to nobody but the app itself.
        @OrNull public var received: Delivery?
        /// The picture that it opened with: a file's name, or words for what is none.
        @OrNull public var launchImage: String?
        /// The file of that picture in the bundle; nil if it is none, or is not there.
        @OrNull public var launchPicture: String?

        /// An app that nothing has happened to.
        package init(topic: Topic, name: String) {
            self.topic = topic
            self.name = name
            environment = nil
            token = nil
            permission = nil
            refused = nil
            screenURL = nil
            openedWith = nil
            received = nil
            launchImage = nil
            launchPicture = nil
        }

        private enum CodingKeys: String, CodingKey {
            case topic, name, icon, badge, state, environment, token, permission, wants, refused, received
            case screenURL = "screen_url"
            case openedWith = "opened_with"
            case launchImage = "launch_image"
            case launchPicture = "launch_picture"
        }
    }

    /// A notification that an app got.
    public struct Delivery: Codable, Hashable, Sendable {
        /// Its `apns-id`.
        @OrNull public var apnsID: String?
        /// Its payload; nil for what is no JSON object.
        @OrNull public var payload: PayloadValue?

        /// What came.
        package init(apnsID: String?, payload: PayloadValue?) {
            self.apnsID = apnsID
            self.payload = payload
        }

        private enum CodingKeys: String, CodingKey {
            case apnsID = "apns_id"
            case payload
        }
    }

    /// A notification that the user can see.
    public struct Notification: Codable, Hashable, Sendable {
        /// By what actions name it: `n1`.
        public var id: String
        /// Its `apns-id`.
        @OrNull public var apnsID: String?
        /// The app that it is for.
        public var topic: Topic
        /// The app's name.
        public var app: String
        /// The first line.
        @OrNull public var title: String?
        /// The second line.
        @OrNull public var subtitle: String?
        /// The text.
        @OrNull public var body: String?
        /// The language that the texts are in.
        @OrNull public var language: String?
        /// When it came.
        public var time: Double
        /// Where it was shown first.
        public var place: Presentation.Place
        /// The group that it is shown in.
        @OrNull public var thread: String?
        /// How much it may interrupt.
        @OrNull public var interruption: String?
        /// The buttons of an alert on an unlocked screen.
        public var buttons: [String] = []
        /// The text beside the slider of an alert on a locked screen.
        @OrNull public var slider: String?
        /// The buttons of its category.
        public var actions: [NotificationCategory.Action] = []
        /// Whether it took the place of an older one.
        public var replaced = false

        /// A notification without texts.
        package init(id: String, topic: Topic, app: String, time: Double, place: Presentation.Place) {
            self.id = id
            self.topic = topic
            self.app = app
            self.time = time
            self.place = place
            apnsID = nil
            title = nil
            subtitle = nil
            body = nil
            language = nil
            thread = nil
            interruption = nil
            slider = nil
        }

        private enum CodingKeys: String, CodingKey {
            case id
            case apnsID = "apns_id"
            case topic, app, title, subtitle, body, language, time, place, thread, interruption, buttons, slider,
                actions
            case replaced
        }
    }

    /// A Live Activity that the user can see.
    public struct Activity: Codable, Hashable, Sendable {
        /// By what it is known: `a1`.
        public var id: String
        /// The app that it is of.
        public var topic: Topic
        /// The app's name.
        public var app: String
        /// What it is.
        public var state: Presentation.Activity.State
        /// What changes about it.
        public var content: PayloadValue
        /// What does not.
        public var attributes: PayloadValue
        /// The title of its last alert.
        @OrNull public var title: String?
        /// The text of its last alert.
        @OrNull public var body: String?
        /// When it becomes outdated.
        @OrNull public var staleDate: Double?
        /// When it goes.
        @OrNull public var dismissalDate: Double?

        /// An activity that just began.
        package init(id: String, topic: Topic, app: String, content: PayloadValue, attributes: PayloadValue) {
            self.id = id
            self.topic = topic
            self.app = app
            self.content = content
            self.attributes = attributes
            state = .active
            title = nil
            body = nil
            staleDate = nil
            dismissalDate = nil
        }

        private enum CodingKeys: String, CodingKey {
            case id, topic, app, state, content, attributes, title, body
            case staleDate = "stale_date"
            case dismissalDate = "dismissal_date"
        }
    }

    /// A sound that was heard.
    public struct Sound: Codable, Hashable, Sendable {
        /// By what a view knows whether it has played it: `s1`.
        public var id: String
        /// The app that made it.
        public var topic: Topic
        /// The file, or `default`.
        public var name: String
        /// Whether it passes the mute switch and a Focus.
        public var critical = false
        /// From 0 to 1; only critical sounds have one.
        @OrNull public var volume: Double?
        /// When it was heard.
        public var time: Double

        /// A sound of ordinary loudness.
        package init(id: String, topic: Topic, name: String, time: Double) {
            self.id = id
            self.topic = topic
            self.name = name
            self.time = time
            volume = nil
        }
    }

    /// Something that happened, in words.
    public struct Line: Codable, Hashable, Sendable {
        /// When.
        public var time: Double
        /// What.
        public var text: String

        /// Something that happened.
        package init(time: Double, text: String) {
            self.time = time
            self.text = text
        }
    }
}
