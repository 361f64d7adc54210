public import HeraldModel

/// What happens to a device.
public enum DeviceEvent: Hashable, Sendable {
    /// The service has let it in.
    case connected
    /// An app has its device token: its own to hand to its provider.
    case token(DeviceToken, for: Topic)
    /// The service does not register an app.
    case appRefused(Topic, reason: String)
    /// The service has removed an app: its device token is dead.
    case removed(Topic)
    /// The service knows whether the user wants the app's notifications.
    case settingsTaken(Topic)
    /// A notification came. It counts as delivered once the handler returns.
    case notification(ReceivedNotification)
    /// The connection is gone; the next attempt comes after a pause, or with the network (nil).
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
    /// How long it is good for; nil if the service says nothing, as for one that is not stored.
    public let expiresIn: Duration?
    /// Whether the service sends it again, since it knows of no acknowledgement.
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
