public import HeraldModel

/// A broadcast channel of an app ("Sending channel management requests to APNs").
public struct ProviderChannel: Hashable, Sendable {
    /// Message storage policy of a channel (`message-storage-policy`), fixed at its creation.
    public enum Storage: Int, Hashable, Sendable {
        /// No storage: a message reaches only connected devices.
        case none = 0
        /// The service stores the newest message for devices that connect later.
        case newest = 1
    }

    /// Identifier in base64 (`apns-channel-id`); any device that knows it may subscribe.
    public let id: String
    /// Message storage policy.
    public let storage: Storage
}

/// A message to all subscribers of a channel.
public struct BroadcastRequest: Sendable {
    /// The app's bundle identifier, without a suffix.
    public var app: Topic
    /// The channel's identifier (``ProviderChannel/id``).
    public var channel: String
    /// JSON payload of a Live Activity, sent byte for byte: 1 to 5,120 bytes.
    public var payload: [UInt8]
    /// Urgency (`apns-priority`).
    public var priority: Priority = .immediate
    /// How long the service may store it; ``Expiration/once`` for a channel without storage.
    public var expiration: Expiration = .once
    /// Identifier (`apns-request-id`); nil lets the client choose one.
    public var id: NotificationID?
    /// Tag (`herald-tag`), as that of a notification.
    public var tag: String?

    /// Makes a broadcast.
    public init(app: Topic, channel: String, payload: [UInt8]) {
        self.app = app
        self.channel = channel
        self.payload = payload
    }

    /// Makes a broadcast with a typed payload.
    /// - Throws: ``ProviderError/Code/badRequest`` if it has more than 5,120 bytes.
    public init(app: Topic, channel: String, payload: Payload) throws {
        self.init(app: app, channel: channel, payload: try payload.encodedForBroadcast())
    }
}

/// The service's answer to a channel management request.
public enum ChannelAnswer<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The request succeeded.
    case done(Value)
    /// The service refused the request.
    case refused(PushRefusal)
}
