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
    case settingsTaken(Topic, isEnabled: Bool)
    /// The service has taken the subscription to a channel, on this connection.
    case subscribed(DeviceChannel)
    /// The service refused the subscription to a channel.
    case channelRefused(DeviceChannel, reason: String)
    /// A notification or a broadcast arrived. It counts as delivered once the handler returns.
    case notification(ReceivedNotification)
    /// The service has announced which authorities and addresses are its own; the client uses them from now on.
    case announced(addresses: [String], authorities: Int)
    /// An announcement cannot be trusted, or not be kept; the client goes on as before.
    case announcementRefused(reason: String)
    /// The connection ended. The next attempt follows after the pause, or when the network is switched on (nil).
    case disconnected(reason: String, nextAttempt: Duration?)
}

/// A notification as a device receives it.
public struct ReceivedNotification: Hashable, Sendable {
    /// The app that it is for.
    public let topic: Topic
    /// The channel of a broadcast, in base64; nil for a notification of this device alone.
    public let channel: String?
    /// JSON, byte for byte as the provider sent it.
    public let payload: [UInt8]
    /// `apns-id`; of a broadcast, `apns-unique-id`.
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
        channel: String? = nil,
        payload: [UInt8],
        id: NotificationID?,
        pushType: PushType?,
        priority: Priority?,
        collapseID: String?,
        expiresIn: Duration?,
        isRepeated: Bool
    ) {
        self.topic = topic
        self.channel = channel
        self.payload = payload
        self.id = id
        self.pushType = pushType
        self.priority = priority
        self.collapseID = collapseID
        self.expiresIn = expiresIn
        self.isRepeated = isRepeated
    }
}
