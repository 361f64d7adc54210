public import HeraldJSON
public import HeraldModel

/// The visible state of a simulated device.
///
/// Every view shows a snapshot.
///
/// Its JSON is the answer of the screen's `GET /api/device` and of the local socket's `device` and `watch`. Members are in
/// snake_case, times are UNIX seconds, and a member without a value is `null`.
public struct PhoneSnapshot: Codable, SnakeCased, Hashable, Sendable {
    /// The device's identifier.
    public var device: String
    /// The service, as `host:port`.
    public var service: String
    /// The time.
    public var time: Double
    /// The connection.
    public var connection = Connection()
    /// Whether the screen is locked.
    public var locked = false
    /// The user's languages, in order of preference.
    public var languages: [String] = ["en"]
    /// The languages of the apps' texts and of the device's own words, sorted.
    public var availableLanguages: [String] = []
    /// Whether it has a network.
    public var network = true
    /// Whether it saves power.
    public var saving = false
    /// Whether the mute switch is on.
    public var muted = false
    /// Whether a Focus is on.
    public var focus = false
    /// The seconds by which its clock is ahead of the machine's.
    public var clock = 0.0
    /// Its time zone.
    public var timeZone = "GMT"
    /// The app in the foreground.
    @ExplicitNull public var foreground: Topic?
    /// The apps, by name.
    public var apps: [App] = []
    /// The apps that request the user's permission, in the order of their requests.
    public var questions: [Topic] = []
    /// The notifications on the screen, newest first; 100 at most.
    public var notifications: [Notification] = []
    /// The notification over the unlocked screen: a banner, until it goes away by itself, else the newest unanswered alert.
    @ExplicitNull public var banner: String?
    /// The newest alert of the lock screen, into whose app unlocking leads.
    @ExplicitNull public var lockAlert: String?
    /// The Live Activities, newest first.
    public var activities: [Activity] = []
    /// The last ten sounds, newest last; a view plays each once.
    public var sounds: [Sound] = []
    /// The last hundred events of the device, newest last; notifications are in the display log.
    public var log: [Line] = []
    /// A number that grows with every change of the display log.
    public var displayLogRevision = 0
    /// The words of the device's own interface, in the first of the user's languages that it has.
    public var words = DeviceWords(for: [])
}

extension PhoneSnapshot {
    /// The connection of a device.
    public struct Connection: Codable, SnakeCased, Hashable, Sendable {
        /// The state of a connection.
        public enum State: String, Codable, Hashable, Sendable, CaseIterable {
            /// The service has accepted the connection.
            case connected
            /// The device is connecting.
            case connecting
            /// There is no connection; ``Connection/retryIn`` is the time until the next attempt.
            case offline
            /// The service refuses the device.
            case refused
        }

        /// The state.
        public var state = State.connecting
        /// The reason why it is not connected.
        @ExplicitNull public var reason: String?
        /// The seconds until the next attempt.
        @ExplicitNull public var retryIn: Double?
    }

    /// An app on the device.
    public struct App: Codable, SnakeCased, Hashable, Sendable {
        /// Its topic.
        public var topic: Topic
        /// The name under its icon.
        public var name: String
        /// Whether it has an icon of its own.
        public var icon = false
        /// The number on its icon; 0 for none.
        public var badge = 0
        /// Its state.
        public var state = AppState.notRunning
        /// The environment of its registration; nil for the one that the service selects.
        @ExplicitNull public var environment: PushEnvironment?
        /// Its device token, lower-case hex.
        @ExplicitNull public var token: String?
        /// The user's permission; nil until the user has answered.
        @ExplicitNull public var permission: NotificationSettings?
        /// The user's style for its alerts.
        public var style = AlertStyle.banner
        /// The permission that it requests.
        public var wants: [NotificationKind] = NotificationKind.allCases
        /// The reason why the service does not register it.
        @ExplicitNull public var refused: String?
        /// The app's own page, which is shown while the app is open.
        @ExplicitNull public var screenURL: String?
        /// The payload of the notification that it was opened with.
        @ExplicitNull public var openedWith: JSON?
        /// The last notification that it received while open.
        @ExplicitNull public var received: Delivery?
        /// The last button of a notification that the user pressed, until the app is left.
        @ExplicitNull public var action: PressedAction?
        /// The image with which it opened: a file name, or a description.
        @ExplicitNull public var launchImage: String?
        /// The file of that image in the bundle; nil if there is none.
        @ExplicitNull public var launchPicture: String?
        /// Its pending local notifications, the next one first.
        public var pending: [Pending] = []
        /// The channels to which it is subscribed.
        public var channels: [Channel] = []
    }

    /// A subscription of an app to a broadcast channel.
    public struct Channel: Codable, Hashable, Sendable {
        /// The channel (`apns-channel-id`).
        public var id: String
        /// The reason why the service refuses it; nil if it does not, or has not answered yet.
        @ExplicitNull public var refused: String?
        /// The `apns-unique-id` of the newest broadcast, which names its display record.
        @ExplicitNull public var newest: String?
    }

    /// A local notification that an app has scheduled.
    public struct Pending: Codable, Hashable, Sendable {
        /// Its identifier.
        public var id: String
        /// The time at which it is due next.
        public var next: Double
        /// The first line.
        @ExplicitNull public var title: String?
        /// The text.
        @ExplicitNull public var body: String?
        /// The rule of a repeating one: ``CalendarRule``.
        @ExplicitNull public var every: String?
    }

    /// A notification that an app received.
    public struct Delivery: Codable, SnakeCased, Hashable, Sendable {
        /// Its `apns-id`.
        @ExplicitNull public var apnsID: String?
        /// The identifier of a local notification; nil for a remote one.
        @ExplicitNull public var local: String?
        /// The time of its arrival.
        public var time: Double
        /// Its payload; nil if it is not a JSON object.
        @ExplicitNull public var payload: JSON?

        package init(apnsID: String?, local: String?, time: Double, payload: JSON?) {
            self.apnsID = apnsID
            self.local = local
            self.time = time
            self.payload = payload
        }
    }

    /// A button of a notification's category that the user pressed.
    public struct PressedAction: Codable, SnakeCased, Hashable, Sendable {
        /// The `apns-id` of the notification.
        @ExplicitNull public var apnsID: String?
        /// The identifier of a local notification; nil for a remote one.
        @ExplicitNull public var local: String?
        /// Its payload; nil if it is not a JSON object.
        @ExplicitNull public var payload: JSON?
        /// The identifier of the button.
        public var action: String
        /// The text that the user entered.
        @ExplicitNull public var text: String?

        /// Creates a pressed button.
        package init(apnsID: String?, local: String?, payload: JSON?, action: String, text: String?) {
            self.action = action
            self.apnsID = apnsID
            self.local = local
            self.payload = payload
            self.text = text
        }
    }

    /// A notification on the screen.
    public struct Notification: Codable, SnakeCased, Hashable, Sendable {
        /// The identifier for actions: `n1`.
        public var id: String
        /// Its `apns-id`.
        @ExplicitNull public var apnsID: String?
        /// The identifier of a local notification; nil for a remote one.
        @ExplicitNull public var local: String?
        /// The app that it is for.
        public var topic: Topic
        /// The app's name.
        public var app: String
        /// The first line.
        @ExplicitNull public var title: String?
        /// The second line.
        @ExplicitNull public var subtitle: String?
        /// The text.
        @ExplicitNull public var body: String?
        /// The language of the texts.
        @ExplicitNull public var language: String?
        /// The time of its arrival.
        public var time: Double
        /// The place where it was shown first.
        public var place: Presentation.Place
        /// The user's style for the app's alerts when it arrived.
        public var style = AlertStyle.banner
        /// The group of notifications that it belongs to.
        @ExplicitNull public var thread: String?
        /// The interruption level.
        @ExplicitNull public var interruption: String?
        /// The buttons of an alert on an unlocked screen.
        public var buttons: [String] = []
        /// The text on the slider of an alert on a locked screen.
        @ExplicitNull public var slider: String?
        /// The buttons of its category.
        public var actions: [NotificationCategory.Action] = []
        /// Whether it replaced an older one.
        public var replaced = false

        /// Creates a notification without texts.
        package init(id: String, topic: Topic, app: String, time: Double, place: Presentation.Place) {
            self.id = id
            self.topic = topic
            self.app = app
            self.time = time
            self.place = place
        }
    }

    /// A Live Activity on the screen.
    public struct Activity: Codable, SnakeCased, Hashable, Sendable {
        /// The identifier: `a1`.
        public var id: String
        /// The app that it belongs to.
        public var topic: Topic
        /// The app's name.
        public var app: String
        /// Its state.
        public var state: Presentation.Activity.State = .active
        /// The content, which changes.
        public var content: JSON
        /// The attributes, which do not change.
        public var attributes: JSON
        /// The title of its last alert.
        @ExplicitNull public var title: String?
        /// The text of its last alert.
        @ExplicitNull public var body: String?
        /// The time at which it becomes outdated.
        @ExplicitNull public var staleDate: Double?
        /// The time at which it is removed.
        @ExplicitNull public var dismissalDate: Double?

        /// Creates an activity that has just started.
        package init(id: String, topic: Topic, app: String, content: JSON, attributes: JSON) {
            self.id = id
            self.topic = topic
            self.app = app
            self.content = content
            self.attributes = attributes
        }
    }

    /// A sound that was played.
    public struct Sound: Codable, Hashable, Sendable {
        /// The identifier: `s1`.
        public var id: String
        /// The app that played it.
        public var topic: Topic
        /// The file, or `default`.
        public var name: String
        /// Whether it overrides the mute switch and a Focus.
        public var critical = false
        /// The volume from 0 to 1; only for critical sounds.
        @ExplicitNull public var volume: Double?
        /// The time.
        public var time: Double

        /// Creates a sound of normal volume.
        package init(id: String, topic: Topic, name: String, time: Double) {
            self.id = id
            self.topic = topic
            self.name = name
            self.time = time
        }
    }

    /// A line of the log.
    public struct Line: Codable, Hashable, Sendable {
        /// The time.
        public var time: Double
        /// The text.
        public var text: String
    }
}
