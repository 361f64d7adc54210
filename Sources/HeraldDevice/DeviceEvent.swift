public import HeraldModel

/// What a device hears of its service.
public enum DeviceEvent: Sendable {
    /// The service has let the device in, under this identifier.
    case connected(DeviceID)
    /// The device token of an app: what the app hands to its provider.
    case token(DeviceToken, topic: Topic)
    /// A notification. It is acknowledged once the handler of the event returns.
    case notification(DeviceNotification)
    /// The service did not take the registration of an app, for this reason.
    case refused(topic: Topic, reason: String)
    /// The connection is gone or could not be made; another attempt follows after the wait.
    case disconnected(reason: String, nextAttemptIn: Duration)
}

/// A notification as it reached the device.
public struct DeviceNotification: Hashable, Sendable {
    /// The app that it is for.
    public let topic: Topic
    /// The payload, byte for byte as the provider sent it.
    public let payload: [UInt8]
    /// The provider's identifier for it (`apns-id`).
    public let id: NotificationID?
    /// Its kind, if the service named one that is known.
    public let pushType: PushType?
    /// Its priority.
    public let priority: Priority?
    /// Its collapse identifier: it replaces what is shown under the same one.
    public let collapseID: String?
    /// How long it is good for from now on; nil if it is not stored anywhere.
    public let expiresIn: Duration?

    /// Makes a notification.
    public init(
        topic: Topic,
        payload: [UInt8],
        id: NotificationID? = nil,
        pushType: PushType? = nil,
        priority: Priority? = nil,
        collapseID: String? = nil,
        expiresIn: Duration? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.id = id
        self.pushType = pushType
        self.priority = priority
        self.collapseID = collapseID
        self.expiresIn = expiresIn
    }
}
