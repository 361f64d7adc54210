package import HeraldModel

/// A change of what a store keeps, as a backup takes it over; later ones replace earlier ones.
package enum StoreEntry: Sendable {
    case app(AppRecord)
    case appForgotten(App)
    case device(DeviceID, DeviceNumber, DeviceRecord)
    /// All registrations of a device, its tokens on the feedback list, and its least generation of a new registration.
    case registrations(DeviceNumber, [Registration], feedback: [FeedbackRecord], generationFloor: UInt32)
    case channel(BroadcastChannel)
    case channelDeleted(ChannelID)
    /// A broadcast that is stored for later subscribers.
    case broadcast(Broadcast)
    case notification(StoredNotification)
    /// The end of a notification for one generation of a registration.
    case notificationEnded(RegisteredSlot)
}
