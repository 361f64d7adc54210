package import HeraldModel

/// A broadcast that a listener has checked.
package struct BroadcastPost: Sendable {
    package let channel: ChannelID
    package let app: App
    package let id: NotificationID
    package let uniqueID: NotificationID
    package let received: WallTime
    /// The end of its storage; nil for one attempt and no storage.
    package let storedUntil: WallTime?
    package let priority: Priority
    package let payload: [UInt8]
    /// The credential of the provider.
    package let sender: SenderNumber

    package init(
        channel: ChannelID,
        app: App,
        id: NotificationID,
        uniqueID: NotificationID,
        received: WallTime,
        storedUntil: WallTime?,
        priority: Priority,
        payload: [UInt8],
        sender: SenderNumber = .unknown
    ) {
        self.channel = channel
        self.app = app
        self.id = id
        self.uniqueID = uniqueID
        self.received = received
        self.storedUntil = storedUntil
        self.priority = priority
        self.payload = payload
        self.sender = sender
    }

    /// The facts for the journal; all broadcasts are of one push type.
    var request: JournalRequest {
        JournalRequest(sender: sender, pushType: .liveactivity, priority: priority, payloadBytes: payload.count)
    }
}
