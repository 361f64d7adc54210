import HeraldModel

/// Notifications with `apns-expiration: 0`: a single attempt.
extension DeliveryShard {
    /// Delivers a notification that is never stored, passes it on, or discards it.
    mutating func postOnce(_ envelope: Envelope) -> PostDecision {
        if holdRules.storesFirst, connections[envelope.notification.slot.device] == nil {
            add(.passOn, to: envelope)
        } else {
            attempt(envelope, at: envelope.notification.received)
        }
        return .accepted
    }

    /// Delivers a notification that is never stored, or discards it.
    private mutating func attempt(_ envelope: Envelope, at now: WallTime) {
        let slot = envelope.notification.slot
        let connection = connections[slot.device]
        guard let connection, let gate = connection.gates[slot.app] else {
            let awaitsToken = connection.map { $0.awaitsToken(of: slot.app) }
            let state = awaitsToken.map { $0 ? JournalState.discardedTokenMissing : .discardedNotSubscribed }
            envelope.note(state ?? .discardedDeviceOffline)
            return add(.record(state ?? .discardedDeviceOffline), to: envelope)
        }
        if let hold = holdRules.hold(envelope.notification, on: connection, at: now) {
            let state = JournalState(notStored: hold.reason)
            envelope.note(state, next: hold.until)
            add(.record(state), to: envelope)
        } else {
            deliver(envelope, on: connection, gate, state: .singleAttempt, at: now)
        }
    }

    /// Delivers a notification that is never stored, on behalf of another node.
    mutating func deliverOnce(_ envelope: Envelope, now: WallTime) -> PassedDelivery {
        let slot = envelope.notification.slot
        guard connections[slot.device] != nil else { return .notHere }
        guard let registration = slots.registration(slot), registration.isLive(in: envelope.generation) else {
            return .unknownRegistration
        }
        if registration.isEnabled {
            attempt(envelope, at: now)
        } else {
            add(.record(.discardedDisabled), to: envelope)
        }
        return .taken
    }
}
