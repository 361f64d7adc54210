import HeraldModel

/// What a notification shows and does: the `aps` dictionary, typed ("Generating a remote notification").
///
/// Custom data of any `Encodable` type stand beside it; see ``encoded(for:custom:)``. Keys that this type does not know
/// are sent by making the payload's bytes yourself.
public struct Payload: Sendable {
    /// What is shown.
    public var alert: Alert?
    /// The number on the app's icon; 0 removes it, nil leaves it.
    public var badge: Int?
    /// What is heard.
    public var sound: Sound?
    /// Groups notifications (`thread-id`).
    public var threadID: String?
    /// The category whose actions are offered; needs an alert.
    public var category: String?
    /// Wakes the app to fetch something (`content-available`); alone, it is a background push.
    public var isContentAvailable = false
    /// Gives the notification to the app's service extension before it is shown (`mutable-content`); needs an alert.
    public var isMutable = false
    /// The window that is brought forward (`target-content-id`).
    public var targetContentID: String?
    /// How much it may disturb.
    public var interruptionLevel: InterruptionLevel?
    /// The place in the notification summary, 0 to 1; for Live Activities any number (`relevance-score`).
    public var relevanceScore: Double?
    /// What a Focus filter compares (`filter-criteria`).
    public var filterCriteria: String?
    /// What changes a Live Activity.
    public var liveActivity: LiveActivity?
    /// Tells widgets and controls to reload (`content-changed`).
    public var isContentChanged = false
    /// What fills the template of a website's notification (`url-args`).
    public var urlArguments: [String] = []

    /// Makes a payload with an empty `aps`.
    public init() {}

    /// Makes a payload that shows a text.
    public init(_ text: String) {
        alert = Alert(text)
    }

    /// Makes a payload that shows an alert.
    public init(alert: Alert) {
        self.alert = alert
    }

    /// Makes a silent payload that wakes its app (push type ``PushType/background``).
    public static var background: Payload {
        var payload = Payload()
        payload.isContentAvailable = true
        return payload
    }

    /// Makes a payload for push types ``PushType/widgets`` and ``PushType/controls``.
    public static var contentChanged: Payload {
        var payload = Payload()
        payload.isContentChanged = true
        return payload
    }

    /// How much a notification may disturb.
    public enum InterruptionLevel: String, Hashable, Sendable, CaseIterable {
        /// In the list only.
        case passive
        /// Screen and sound: the default.
        case active
        /// Also while a Focus is on.
        case timeSensitive = "time-sensitive"
        /// Also past the mute switch; needs an entitlement.
        case critical
    }
}
