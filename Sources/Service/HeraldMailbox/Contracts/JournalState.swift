/// The state of a notification: those of Apple's delivery log ("Viewing the status of push notifications using metrics and
/// APNs"), and Herald's own.
///
/// The raw values are on disk: never reuse one.
package enum JournalState: UInt8, Hashable, Sendable, CaseIterable {
    case received = 1
    case delivered = 2
    case deliveredFromStorage = 3
    /// Written at QoS 0, without acknowledgement.
    case deliveredUnacknowledged = 4
    case deliveredUnacknowledgedFromStorage = 5
    /// The device refused it (MQTT 5 reason code 0x80 or above).
    case refusedByDevice = 6
    case refusedByDeviceFromStorage = 7
    /// The device's client ended its connections at it.
    case refusedByEndedConnections = 8
    case storedDeviceOffline = 10
    case storedPower = 11
    case storedUnacknowledged = 12
    case storedBacklog = 13
    case storedBudget = 14
    /// In a cluster: stored first, and sent to the connected device then.
    case storedBeforeDelivery = 15
    /// The device is connected, and has not presented the app's token, which the service requires.
    case storedTokenMissing = 16
    /// The device is connected, and has not subscribed to the app's notifications.
    case storedNotSubscribed = 17
    case replaced = 20
    case discardedUnregistered = 30
    case discardedUnregisteredFromStorage = 31
    case discardedExpired = 32
    case discardedExpiredFromStorage = 33
    case discardedDisabled = 34
    case discardedDisabledFromStorage = 35
    /// Not JSON, and accepted because the operator asks for it; no app could read it.
    case discardedUndeliverable = 36
    /// Larger than the device's maximum packet size ([MQTT-3.1.2-25]: treated as if it had been sent).
    case discardedTooLarge = 37
    case discardedTooLargeFromStorage = 38
    /// Not to be stored, and the device was away, or went away before it acknowledged.
    case discardedDeviceOffline = 39
    /// Not to be stored, and the device saves power.
    case discardedPower = 40
    /// Not to be stored, and the device has too many in flight.
    case discardedBacklog = 41
    /// Not to be stored, and the background budget is spent.
    case discardedBudget = 42
    /// Not to be stored, and the connected device has not presented the app's token.
    case discardedTokenMissing = 43
    /// Not to be stored, and the connected device has not subscribed to the app's notifications.
    case discardedNotSubscribed = 44
    /// A broadcast went to the connected subscribers.
    case sentToSubscribers = 50
    /// A broadcast is stored for devices that subscribe later.
    case storedForSubscribers = 51
    /// The channel of a stored broadcast was deleted.
    case discardedChannelDeleted = 52
    case refusedByDrill = 60
    /// A drill lost it without an answer to the provider.
    case lostByDrill = 61
    /// It was accepted, and a drill withheld the answer.
    case answerWithheldByDrill = 62
    /// The service refused the provider's request; ``JournalRefusal`` has the reason.
    case refusedByService = 63
    /// Its payload asks for a drill, but payload drills are off, or it came through the binary interface.
    case drillUnheeded = 64

    package init(stored reason: StoreReason) {
        switch reason {
        case .deviceOffline: self = .storedDeviceOffline
        case .power: self = .storedPower
        case .unacknowledged: self = .storedUnacknowledged
        case .backlog: self = .storedBacklog
        case .budget: self = .storedBudget
        case .beforeDelivery: self = .storedBeforeDelivery
        case .tokenMissing: self = .storedTokenMissing
        case .notSubscribed: self = .storedNotSubscribed
        }
    }

    /// The state of a notification that is not to be stored and cannot be delivered now.
    init(notStored reason: HoldReason) {
        switch reason {
        case .room: self = .discardedBacklog
        case .power: self = .discardedPower
        case .budget: self = .discardedBudget
        case .expiry: self = .discardedBacklog
        }
    }

    /// Whether the notification is in the store.
    var isStored: Bool {
        switch self {
        case .storedDeviceOffline, .storedPower, .storedUnacknowledged, .storedBacklog, .storedBudget,
            .storedBeforeDelivery, .storedTokenMissing, .storedNotSubscribed:
            true
        default: false
        }
    }

    /// Whether its lines have facts of the provider's request.
    package var isOfRequest: Bool { self == .received || self == .refusedByService }

    package init(_ result: DeliveryResult, isFromStorage: Bool) {
        switch result {
        case .acknowledged: self = isFromStorage ? .deliveredFromStorage : .delivered
        case .written: self = isFromStorage ? .deliveredUnacknowledgedFromStorage : .deliveredUnacknowledged
        case .refused: self = isFromStorage ? .refusedByDeviceFromStorage : .refusedByDevice
        case .tooLarge: self = isFromStorage ? .discardedTooLargeFromStorage : .discardedTooLarge
        case .expired: self = isFromStorage ? .discardedExpiredFromStorage : .discardedExpired
        case .endsConnection: self = .refusedByEndedConnections
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
        case .refusedByEndedConnections: "refused by the device (its client ends the connection at it)"
        case .storedDeviceOffline: "stored (device offline)"
        case .storedPower: "stored (power)"
        case .storedUnacknowledged: "stored (sent, not acknowledged yet)"
        case .storedBacklog: "stored (behind others that the device has not acknowledged)"
        case .storedBudget: "stored (background budget)"
        case .storedBeforeDelivery: "stored (before it is sent)"
        case .storedTokenMissing: "stored (token not presented)"
        case .storedNotSubscribed: "stored (not subscribed)"
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
        case .discardedTokenMissing: "discarded (not to be stored, and the device has not presented the token)"
        case .discardedNotSubscribed: "discarded (not to be stored, and the device has not subscribed)"
        case .refusedByDrill: "refused (drill)"
        case .lostByDrill: "lost (drill)"
        case .answerWithheldByDrill: "answer withheld (drill)"
        case .refusedByService: "refused"
        case .drillUnheeded: "drill without effect"
        }
    }
}
