import HeraldModel

/// Decides whether a connected device may have a notification now.
struct HoldRules {
    /// The limit of deliveries in flight to one device while memory is short.
    private static let lowMemoryLimit = 4

    let inFlightLimit: Int
    var budget: BackgroundBudget
    /// Whether every storable notification is stored before it is sent: in a cluster the log orders them.
    var storesFirst = false
    /// Whether memory is short: a device that is behind has its notifications on the disk instead.
    var isMemoryShort = false
    /// The moment up to which expiry is certain; nil if that is the present one.
    var certainTime: WallTime?

    /// Whether a stored notification has certainly expired.
    func isExpired(_ notification: Notification, at now: WallTime) -> Bool {
        notification.isExpired(at: min(certainTime ?? now, now))
    }

    /// As ``hold(_:on:at:)``, and the hold of one that looks expired after a jump of the clock.
    func holdOfStored(_ notification: Notification, on connection: DeviceConnection, at now: WallTime) -> Hold? {
        guard !notification.isExpired(at: now) else { return Hold(reason: .expiry, until: nil) }
        return hold(notification, on: connection, at: now)
    }

    /// The hold that keeps a notification from a device; nil if the device may have it now.
    ///
    /// Power comes first: room alone would not send such a notification.
    func hold(_ notification: Notification, on connection: DeviceConnection, at now: WallTime) -> Hold? {
        let isBackground = notification.pushType == .background
        if connection.isSavingPower, notification.priority != .immediate {
            let slot = notification.slot
            guard isBackground, notification.priority == .conserving, budget.isNewsstand(slot.app) else {
                return Hold(reason: .power, until: nil)
            }
            if let owed = budget.owedFrom(slot, now) { return Hold(reason: .power, until: owed) }
        }
        if isBackground, let due = budget.due(notification, at: now) { return Hold(reason: .budget, until: due) }
        let limit = isMemoryShort ? min(inFlightLimit, Self.lowMemoryLimit) : inFlightLimit
        return connection.inFlight.count < limit ? nil : Hold(reason: .room, until: nil)
    }
}

/// A notification that waits although its device is connected.
struct Hold {
    let reason: HoldReason
    /// The end of the hold, where the clock decides it.
    let until: WallTime?
}

/// The reason of a hold.
enum HoldReason: Hashable {
    /// The device has as many unacknowledged notifications as it may.
    case room
    /// The device saves power.
    case power
    /// The app has had as many background notifications as it may.
    case budget
    /// It looks expired, after a jump of the clock.
    case expiry
}

extension StoreReason {
    init(_ reason: HoldReason) {
        switch reason {
        case .room: self = .backlog
        case .power: self = .power
        case .budget: self = .budget
        case .expiry: self = .backlog
        }
    }
}
