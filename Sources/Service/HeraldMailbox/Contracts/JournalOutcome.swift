/// A group of journal states: the label `outcome` of the metric of journal lines.
package enum JournalOutcome: String, Codable, CaseIterable, Sendable {
    case received
    case delivered
    case deliveredFromStorage = "delivered_from_storage"
    case refusedByDevice = "refused_by_device"
    case stored
    case replaced
    case discarded
    case sentToSubscribers = "sent_to_subscribers"
    /// The service refused the request.
    case refused
    /// A drill refused or lost the notification, or withheld its answer; or its payload asked for one that did not run.
    case drilled

    package init(_ state: JournalState) {
        switch state {
        case .received: self = .received
        case .delivered, .deliveredUnacknowledged: self = .delivered
        case .deliveredFromStorage, .deliveredUnacknowledgedFromStorage: self = .deliveredFromStorage
        case .refusedByDevice, .refusedByDeviceFromStorage, .refusedByEndedConnections: self = .refusedByDevice
        case .storedDeviceOffline, .storedPower, .storedUnacknowledged, .storedBacklog, .storedBudget,
            .storedBeforeDelivery, .storedTokenMissing, .storedNotSubscribed, .storedForSubscribers:
            self = .stored
        case .replaced: self = .replaced
        case .discardedUnregistered, .discardedUnregisteredFromStorage, .discardedExpired,
            .discardedExpiredFromStorage, .discardedDisabled, .discardedDisabledFromStorage, .discardedUndeliverable,
            .discardedTooLarge, .discardedTooLargeFromStorage, .discardedDeviceOffline, .discardedPower,
            .discardedBacklog, .discardedBudget, .discardedTokenMissing, .discardedNotSubscribed,
            .discardedChannelDeleted:
            self = .discarded
        case .sentToSubscribers: self = .sentToSubscribers
        case .refusedByService: self = .refused
        case .refusedByDrill, .lostByDrill, .answerWithheldByDrill, .drillUnheeded: self = .drilled
        }
    }
}
