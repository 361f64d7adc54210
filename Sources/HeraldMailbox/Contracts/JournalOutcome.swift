/// A group of journal states: the label `outcome` of the metric of journal lines.
package enum JournalOutcome: String, CaseIterable, Sendable {
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
    /// A drill refused or lost the notification, or withheld its answer.
    case drilled

    package init(_ state: JournalState) {
        switch state {
        case .received: self = .received
        case .delivered, .deliveredUnacknowledged: self = .delivered
        case .deliveredFromStorage, .deliveredUnacknowledgedFromStorage: self = .deliveredFromStorage
        case .refusedByDevice, .refusedByDeviceFromStorage: self = .refusedByDevice
        case .storedDeviceOffline, .storedPower, .storedUnacknowledged, .storedBacklog, .storedBudget,
            .storedBeforeDelivery, .storedForSubscribers:
            self = .stored
        case .replaced: self = .replaced
        case .discardedUnregistered, .discardedUnregisteredFromStorage, .discardedExpired,
            .discardedExpiredFromStorage, .discardedDisabled, .discardedDisabledFromStorage, .discardedUndeliverable,
            .discardedTooLarge, .discardedTooLargeFromStorage, .discardedDeviceOffline, .discardedPower,
            .discardedBacklog, .discardedBudget, .discardedChannelDeleted:
            self = .discarded
        case .sentToSubscribers: self = .sentToSubscribers
        case .refusedByService: self = .refused
        case .refusedByDrill, .lostByDrill, .answerWithheldByDrill: self = .drilled
        }
    }
}

/// Counts of journal lines by outcome, for the lines of one commit.
package struct JournalTally: Sendable {
    private var states: [Int] = Array(repeating: 0, count: Int(UInt8.max) + 1)
    private var isEmpty = true

    package init() {}

    package mutating func count(_ state: JournalState) {
        states[Int(state.rawValue)] += 1
        isEmpty = false
    }

    package mutating func clear() {
        guard !isEmpty else { return }
        for index in states.indices { states[index] = 0 }
        isEmpty = true
    }

    /// The numbers of lines that are not 0.
    package var counts: [JournalOutcome: Int] {
        guard !isEmpty else { return [:] }
        return JournalState.allCases.reduce(into: [:]) { counts, state in
            let count = states[Int(state.rawValue)]
            if count > 0 { counts[JournalOutcome(state), default: 0] += count }
        }
    }
}
