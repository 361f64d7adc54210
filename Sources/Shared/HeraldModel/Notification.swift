/// One notification, checked, for one app on one device.
package struct Notification: Sendable {
    /// The provider's identifier for it (`apns-id`), or the service's where the provider gave none.
    package let id: NotificationID
    /// The service's own identifier (`apns-unique-id`): unique even where providers repeat theirs.
    package let uniqueID: NotificationID
    package let slot: Slot
    package let received: WallTime
    /// The end of its storage; nil for one attempt and no storage.
    package let storedUntil: WallTime?
    package let priority: Priority
    package let pushType: PushType
    /// The credential of the provider; not stored, since only the journal's first line has it.
    package let sender: SenderNumber
    package let collapseID: CollapseID?
    /// JSON, byte for byte as the provider sent it.
    package let payload: [UInt8]

    package init(
        id: NotificationID,
        uniqueID: NotificationID,
        slot: Slot,
        received: WallTime,
        storedUntil: WallTime?,
        priority: Priority,
        pushType: PushType,
        collapseID: CollapseID?,
        payload: [UInt8],
        sender: SenderNumber = .unknown
    ) {
        self.id = id
        self.uniqueID = uniqueID
        self.slot = slot
        self.received = received
        self.storedUntil = storedUntil
        self.priority = priority
        self.pushType = pushType
        self.collapseID = collapseID
        self.payload = payload
        self.sender = sender
    }

    /// Whether it has expired; a notification that is never stored does not expire.
    package func isExpired(at now: WallTime) -> Bool {
        storedUntil.map { $0 <= now } ?? false
    }
}
