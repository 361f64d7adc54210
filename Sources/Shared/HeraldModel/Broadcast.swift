/// The storage policy of a channel (`message-storage-policy`), fixed when the channel is made.
package enum MessageStoragePolicy: UInt8, Hashable, Sendable, CaseIterable {
    /// No storage: a message reaches the devices that are connected.
    case none = 0
    /// The newest message, for up to eight hours, for devices that subscribe later.
    case newest = 1
}

/// A broadcast channel of one app: its messages go to every device that subscribed.
package struct BroadcastChannel: Hashable, Sendable {
    /// The longest payload of a broadcast, in bytes ("Sending broadcast push notification requests to APNs").
    package static let maximumPayloadBytes = 5120

    package let id: ChannelID
    /// The app, by its bundle identifier without any suffix, in one environment.
    package let app: AppNumber
    package let storage: MessageStoragePolicy
    package let created: WallTime

    package init(id: ChannelID, app: AppNumber, storage: MessageStoragePolicy, created: WallTime) {
        self.id = id
        self.app = app
        self.storage = storage
        self.created = created
    }
}

/// One message to a channel, checked and numbered.
package struct Broadcast: Hashable, Sendable {
    package let channel: ChannelID
    package let app: AppNumber
    /// Grows with every broadcast of the service, across restarts too.
    package let number: UInt64
    /// The provider's identifier for the request (`apns-request-id`), or the service's where it gave none.
    package let id: NotificationID
    /// The service's own identifier (`apns-unique-id`).
    package let uniqueID: NotificationID
    package let received: WallTime
    /// The end of its storage for devices that subscribe later; nil if it is not stored.
    package let storedUntil: WallTime?
    package let priority: Priority
    /// JSON, byte for byte as the provider sent it.
    package let payload: [UInt8]

    package init(
        channel: ChannelID,
        app: AppNumber,
        number: UInt64,
        id: NotificationID,
        uniqueID: NotificationID,
        received: WallTime,
        storedUntil: WallTime?,
        priority: Priority,
        payload: [UInt8]
    ) {
        self.channel = channel
        self.app = app
        self.number = number
        self.id = id
        self.uniqueID = uniqueID
        self.received = received
        self.storedUntil = storedUntil
        self.priority = priority
        self.payload = payload
    }

    /// The first number for broadcasts of a moment: numbers follow the clock, so that they rise across restarts.
    package static func firstNumber(at moment: WallTime) -> UInt64 {
        UInt64(clamping: moment.milliseconds) << 10
    }

    /// Whether it has expired; one that is not stored does not expire.
    package func isExpired(at now: WallTime) -> Bool {
        storedUntil.map { $0 <= now } ?? false
    }
}
