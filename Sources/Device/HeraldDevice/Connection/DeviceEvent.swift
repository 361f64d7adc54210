public import HeraldModel

/// An event of a device's connection.
public enum DeviceEvent: Hashable, Sendable {
    /// The service has accepted the connection.
    case connected
    /// An app got its device token, which it hands to its provider.
    case token(DeviceToken, for: Topic)
    /// The service refused to register an app.
    case appRefused(Topic, reason: String)
    /// The service has removed an app. Its device token no longer works.
    case removed(Topic)
    /// The service has confirmed whether the user wants the app's notifications.
    case settingsTaken(Topic)
    /// A notification arrived. It counts as delivered once the handler returns.
    case notification(ReceivedNotification)
    /// The connection ended. The next attempt follows after the pause, or when the network is switched on (nil).
    case disconnected(reason: String, nextAttempt: Duration?)
}

/// A notification as a device receives it.
public struct ReceivedNotification: Hashable, Sendable {
    /// The app that it is for.
    public let topic: Topic
    /// JSON, byte for byte as the provider sent it.
    public let payload: [UInt8]
    /// `apns-id`.
    public let id: NotificationID?
    /// `apns-push-type`.
    public let pushType: PushType?
    /// `apns-priority`.
    public let priority: Priority?
    /// `apns-collapse-id`.
    public let collapseID: String?
    /// The time until it expires; nil if the service sends none, as for a notification that is not stored.
    public let expiresIn: Duration?
    /// Whether the service sends it again, because it got no acknowledgement.
    public let isRepeated: Bool

    package init(
        topic: Topic,
        payload: [UInt8],
        id: NotificationID?,
        pushType: PushType?,
        priority: Priority?,
        collapseID: String?,
        expiresIn: Duration?,
        isRepeated: Bool
    ) {
        self.topic = topic
        self.payload = payload
        self.id = id
        self.pushType = pushType
        self.priority = priority
        self.collapseID = collapseID
        self.expiresIn = expiresIn
        self.isRepeated = isRepeated
    }
}
