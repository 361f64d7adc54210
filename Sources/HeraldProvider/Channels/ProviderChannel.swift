public import HeraldModel

/// A broadcast channel of an app, as its provider sees it ("Sending channel management requests to APNs").
public struct ProviderChannel: Hashable, Sendable {
    /// What a channel keeps of its messages (`message-storage-policy`), fixed when it is made.
    public enum Storage: Int, Hashable, Sendable {
        /// Nothing: a message reaches the devices that are connected.
        case none = 0
        /// The newest message, for some hours, for devices that come later.
        case newest = 1
    }

    /// The channel's identifier (`apns-channel-id`): who knows it may listen.
    public let id: String
    /// What it keeps.
    public let storage: Storage
}

/// One message to all devices that subscribed to a channel.
public struct BroadcastRequest: Sendable {
    /// The app's bundle identifier, without any suffix.
    public var app: Topic
    /// The channel's identifier, as ``ProviderChannel/id`` has it.
    public var channel: String
    /// A Live Activity's payload, sent byte for byte; at most 5,120 bytes.
    public var payload: [UInt8]
    /// How urgent it is.
    public var priority: Priority = .immediate
    /// How long it is kept for devices that come later; ``Expiration/once`` where the channel keeps nothing.
    public var expiration: Expiration = .once
    /// The provider's identifier for it (`apns-request-id`); nil lets the client make one.
    public var id: NotificationID?

    /// Makes a broadcast.
    public init(app: Topic, channel: String, payload: [UInt8]) {
        self.app = app
        self.channel = channel
        self.payload = payload
    }

    /// Makes a broadcast with a typed payload.
    /// - Throws: ``ProviderError/Code/badRequest`` if it is too long.
    public init(app: Topic, channel: String, payload: Payload) throws {
        self.init(app: app, channel: channel, payload: try payload.encodedForBroadcast())
    }
}

/// What the service answered to a request about channels that it did not refuse.
public enum ChannelAnswer<Value: Hashable & Sendable>: Hashable, Sendable {
    /// It did as asked.
    case done(Value)
    /// It did not.
    case refused(PushRefusal)
}
