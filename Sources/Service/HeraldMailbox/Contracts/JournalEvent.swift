package import HeraldModel

/// One line of the journal: an event in the life of a notification or broadcast.
package struct JournalEvent: Hashable, Sendable {
    /// The recipient of the notification.
    package enum Recipient: Hashable, Sendable {
        case device(DeviceNumber)
        /// All subscribers of a channel: the line is about a broadcast.
        case subscribers
        /// No known device: the service refused a request before it knew one.
        case nobody
    }

    /// A fact beside the state.
    package enum Detail: Hashable, Sendable {
        /// The newer notification, with ``JournalState/replaced``.
        case replacement(NotificationID)
        /// The number of devices that were sent a broadcast, with ``JournalState/sentToSubscribers``.
        case subscriberCount(UInt64)
        /// The reason and words of ``JournalState/refusedByService``.
        indirect case refusal(JournalRefusal)
    }

    package let time: WallTime
    package let id: NotificationID
    package let uniqueID: NotificationID
    package let recipient: Recipient
    package let app: AppNumber
    package let state: JournalState
    package let detail: Detail?
    /// Push type and priority, as far as they are known.
    package let traits: JournalTraits
    /// Facts of the provider's request; only with ``JournalState/received`` and ``JournalState/refusedByService``.
    package let request: JournalRequest?

    package init(
        time: WallTime,
        id: NotificationID,
        uniqueID: NotificationID,
        recipient: Recipient,
        app: AppNumber,
        state: JournalState,
        detail: Detail? = nil,
        request: JournalRequest? = nil,
        traits: JournalTraits = .none
    ) {
        self.time = time
        self.id = id
        self.uniqueID = uniqueID
        self.recipient = recipient
        self.app = app
        self.state = state
        let isRefusal = if case .refusal? = detail { true } else { false }
        self.detail = isRefusal == (state == .refusedByService) ? detail : nil
        self.request = state.isOfRequest ? request : nil
        self.traits = state.isOfRequest ? JournalTraits(request) : traits
    }

    /// A line about a notification to a slot.
    package init(
        time: WallTime,
        id: NotificationID,
        uniqueID: NotificationID,
        slot: Slot,
        state: JournalState,
        replacement: NotificationID? = nil,
        request: JournalRequest? = nil,
        traits: JournalTraits = .none
    ) {
        self.time = time
        self.id = id
        self.uniqueID = uniqueID
        recipient = .device(slot.device)
        app = slot.app
        self.state = state
        detail = state == .refusedByService ? nil : replacement.map { .replacement($0) }
        self.request = state.isOfRequest ? request : nil
        self.traits = state.isOfRequest ? JournalTraits(request) : traits
    }

    /// A line about a notification.
    package init(
        _ state: JournalState,
        _ notification: Notification,
        at time: WallTime,
        replacement: NotificationID? = nil
    ) {
        self.time = time
        id = notification.id
        uniqueID = notification.uniqueID
        recipient = .device(notification.slot.device)
        app = notification.slot.app
        self.state = state
        detail = state == .refusedByService ? nil : replacement.map { .replacement($0) }
        request = state.isOfRequest ? JournalRequest(notification) : nil
        traits = JournalTraits(pushType: notification.pushType, priority: notification.priority)
    }

    /// A line about a broadcast.
    package init(
        _ state: JournalState,
        _ broadcast: Broadcast,
        at time: WallTime,
        detail: Detail? = nil,
        request: JournalRequest? = nil
    ) {
        self.init(
            time: time,
            id: broadcast.id,
            uniqueID: broadcast.uniqueID,
            recipient: .subscribers,
            app: broadcast.app,
            state: state,
            detail: detail,
            request: request,
            traits: JournalTraits(pushType: .liveactivity, priority: broadcast.priority)
        )
    }

    /// A line about a request that the service refused.
    ///
    /// The device is that of its device token, nil if the token did not open. The app is that of its topic, or of its device
    /// token if it names none; nil if the service has no such app.
    package init(
        refused refusal: JournalRefusal,
        id: NotificationID,
        device: DeviceNumber?,
        app: AppNumber?,
        at time: WallTime,
        request: JournalRequest
    ) {
        self.init(
            time: time,
            id: id,
            uniqueID: id,
            recipient: device.map { .device($0) } ?? .nobody,
            app: app ?? JournalRefusal.noApp,
            state: .refusedByService,
            detail: .refusal(refusal),
            request: request
        )
    }

    /// The device of the notification; nil for a broadcast, and for a refused request without a valid device token.
    package var device: DeviceNumber? {
        if case .device(let device) = recipient { device } else { nil }
    }

    /// The newer notification that replaced this one.
    package var replacement: NotificationID? {
        if case .replacement(let id)? = detail { id } else { nil }
    }

    /// The number of devices that were sent the broadcast.
    package var subscriberCount: UInt64? {
        if case .subscriberCount(let count)? = detail { count } else { nil }
    }

    /// The reason and words of a refusal by the service.
    package var refusal: JournalRefusal? {
        if case .refusal(let refusal)? = detail { refusal } else { nil }
    }
}
