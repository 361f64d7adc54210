package import HeraldModel

/// One line of a notification's life.
package struct JournalEvent: Hashable, Sendable {
    package let time: WallTime
    package let id: NotificationID
    package let uniqueID: NotificationID
    package let slot: Slot
    package let state: JournalState
    /// What took its place, with ``JournalState/replaced``; of a broadcast, how many devices it went to (see
    /// ``subscribers``).
    package let replacement: NotificationID?

    package init(
        time: WallTime,
        id: NotificationID,
        uniqueID: NotificationID,
        slot: Slot,
        state: JournalState,
        replacement: NotificationID? = nil
    ) {
        self.time = time
        self.id = id
        self.uniqueID = uniqueID
        self.slot = slot
        self.state = state
        self.replacement = replacement
    }

    /// A line about `notification`.
    package init(
        _ state: JournalState,
        _ notification: Notification,
        at time: WallTime,
        replacement: NotificationID? = nil
    ) {
        self.init(
            time: time,
            id: notification.id,
            uniqueID: notification.uniqueID,
            slot: notification.slot,
            state: state,
            replacement: replacement
        )
    }
}

extension JournalEvent {
    /// A line about a broadcast, which is about no device: its number is 0, which no device has.
    package init(_ state: JournalState, _ broadcast: Broadcast, at time: WallTime, replacement: NotificationID? = nil) {
        self.init(
            time: time,
            id: broadcast.id,
            uniqueID: broadcast.uniqueID,
            slot: Slot(device: DeviceNumber(0), app: broadcast.app),
            state: state,
            replacement: replacement
        )
    }

    /// The line that says to how many devices a broadcast went.
    package init(_ broadcast: Broadcast, subscribers: Int, at time: WallTime) {
        let count = NotificationID(high: 0, low: UInt64(clamping: subscribers))
        self.init(.sentToSubscribers, broadcast, at: time, replacement: count)
    }

    /// How many devices a broadcast went to; only with ``JournalState/sentToSubscribers``.
    package var subscribers: Int? {
        guard state == .sentToSubscribers, let replacement else { return nil }
        return Int(clamping: replacement.low)
    }
}

/// What became of a notification: the states that Apple's delivery log shows, and the replacement that it does not
/// ("Viewing the status of push notifications using metrics and APNs").
///
/// The raw values are on disk: never reuse one.
package enum JournalState: UInt8, Hashable, Sendable, CaseIterable {
    case received = 1
    case delivered = 2
    case deliveredFromStorage = 3
    /// Written to a connection that subscribed at QoS 0, which acknowledges nothing.
    case deliveredUnacknowledged = 4
    case deliveredUnacknowledgedFromStorage = 5
    /// The device acknowledged it with a refusal (MQTT 5 reason code 0x80 or above).
    case refusedByDevice = 6
    case refusedByDeviceFromStorage = 7
    case storedDeviceOffline = 10
    case storedPower = 11
    case storedUnacknowledged = 12
    case storedBacklog = 13
    case storedBudget = 14
    case replaced = 20
    case discardedUnregistered = 30
    case discardedUnregisteredFromStorage = 31
    case discardedExpired = 32
    case discardedExpiredFromStorage = 33
    case discardedDisabled = 34
    case discardedDisabledFromStorage = 35
    /// Not JSON, accepted because the operator asks for it; no app could read it.
    case discardedUndeliverable = 36
    /// Larger than the device's maximum packet size ([MQTT-3.1.2-25]: treated as if it had been sent).
    case discardedTooLarge = 37
    case discardedTooLargeFromStorage = 38
    /// Not to be stored, and the device was away, or went away before it acknowledged the one attempt.
    case discardedDeviceOffline = 39
    /// Not to be stored, and the device saves power.
    case discardedPower = 40
    /// Not to be stored, and the device is behind with acknowledging.
    case discardedBacklog = 41
    /// Not to be stored, and the app has had as many background notifications as it may.
    case discardedBudget = 42
    /// A broadcast went to the devices that were subscribed and connected; how many is with the line.
    case sentToSubscribers = 50
    /// A broadcast is kept for devices that subscribe later.
    case storedForSubscribers = 51
    /// The channel of a broadcast that was kept was deleted.
    case discardedChannelDeleted = 52
    /// A drill answered the provider with a refusal; it went nowhere.
    case refusedByDrill = 60
    /// A drill lost it, and left the provider without an answer.
    case lostByDrill = 61
    /// It was accepted, and a drill kept that from the provider.
    case answerWithheldByDrill = 62

    package init(stored reason: StoreReason) {
        switch reason {
        case .deviceOffline: self = .storedDeviceOffline
        case .power: self = .storedPower
        case .unacknowledged: self = .storedUnacknowledged
        case .backlog: self = .storedBacklog
        case .budget: self = .storedBudget
        }
    }

    /// The end of a notification that is not to be stored and cannot be delivered now.
    init(notStored obstacle: Line.Obstacle) {
        switch obstacle {
        case .room: self = .discardedBacklog
        case .power: self = .discardedPower
        case .budget: self = .discardedBudget
        }
    }

    /// Whether it says that the notification is in the store.
    var isStored: Bool {
        switch self {
        case .storedDeviceOffline, .storedPower, .storedUnacknowledged, .storedBacklog, .storedBudget: true
        default: false
        }
    }

    package init(_ result: DeliveryResult, isFromStorage: Bool) {
        switch result {
        case .acknowledged: self = isFromStorage ? .deliveredFromStorage : .delivered
        case .written: self = isFromStorage ? .deliveredUnacknowledgedFromStorage : .deliveredUnacknowledged
        case .refused: self = isFromStorage ? .refusedByDeviceFromStorage : .refusedByDevice
        case .tooLarge: self = isFromStorage ? .discardedTooLargeFromStorage : .discardedTooLarge
        case .expired: self = isFromStorage ? .discardedExpiredFromStorage : .discardedExpired
        }
    }

    /// The state in words, as `herald journal` prints it.
    package var words: String {
        switch self {
        case .received: "received"
        case .delivered: "delivered"
        case .deliveredFromStorage: "delivered from storage"
        case .deliveredUnacknowledged: "delivered, unacknowledged"
        case .deliveredUnacknowledgedFromStorage: "delivered from storage, unacknowledged"
        case .refusedByDevice: "refused by the device"
        case .refusedByDeviceFromStorage: "refused by the device (from storage)"
        case .storedDeviceOffline: "stored (device offline)"
        case .storedPower: "stored (power)"
        case .storedUnacknowledged: "stored (sent, not acknowledged yet)"
        case .storedBacklog: "stored (behind others that the device has not acknowledged)"
        case .storedBudget: "stored (background budget)"
        case .replaced: "replaced"
        case .discardedUnregistered: "discarded (unregistered)"
        case .discardedUnregisteredFromStorage: "discarded from storage (unregistered)"
        case .discardedExpired: "discarded (expired)"
        case .discardedExpiredFromStorage: "discarded from storage (expired)"
        case .discardedDisabled: "discarded (disabled)"
        case .discardedDisabledFromStorage: "discarded from storage (disabled)"
        case .discardedUndeliverable: "discarded (undeliverable payload)"
        case .discardedTooLarge: "discarded (larger than the device accepts)"
        case .discardedTooLargeFromStorage: "discarded from storage (larger than the device accepts)"
        case .sentToSubscribers: "sent to the channel's subscribers"
        case .storedForSubscribers: "stored (for devices that subscribe later)"
        case .discardedChannelDeleted: "discarded from storage (channel deleted)"
        case .discardedDeviceOffline: "discarded (not to be stored, and the device was away)"
        case .discardedPower: "discarded (not to be stored, and the device saves power)"
        case .discardedBacklog: "discarded (not to be stored, and the device is behind)"
        case .discardedBudget: "discarded (not to be stored, and the background budget is spent)"
        case .refusedByDrill: "refused (drill)"
        case .lostByDrill: "lost (drill)"
        case .answerWithheldByDrill: "answer withheld (drill)"
        }
    }
}

/// Where the journal is kept.
package protocol JournalStore: Sendable {
    /// Writes lines soon, in this order; returns at once. What is not written when the process dies is lost.
    func record(_ events: [JournalEvent])

    /// Writes one line that a provider's receipt depends on: the receipt is settled once the line is durable.
    func record(_ event: JournalEvent, settling receipt: Receipt?)

    /// Looks lines up.
    /// - Parameters:
    ///   - query: What to look for.
    ///   - limit: The most lines; the newest are kept.
    /// - Returns: The lines that match, oldest first, including all recorded before the call.
    /// - Throws: If the journal cannot be read.
    func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent]

    /// Drops lines older than `moment`, and the oldest beyond `maximumBytes`; in bounded steps.
    /// - Throws: If the journal cannot be written.
    func trim(before moment: WallTime, maximumBytes: Int) async throws
}

/// What to look for in the journal.
package enum JournalQuery: Hashable, Sendable {
    /// A provider's identifier or the service's own.
    case notification(NotificationID)
    case device(DeviceNumber)
    case app(AppNumber)
}
