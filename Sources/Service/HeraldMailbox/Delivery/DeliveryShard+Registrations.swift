import HeraldModel

/// Changes of registrations while their devices are connected.
extension DeliveryShard {
    /// Ends a registration: nothing is sent any more, and what was in flight is not stored.
    mutating func endRegistration(_ slot: Slot, at moment: WallTime) {
        slots.endRegistration(slot, at: moment)
        guard let connection = connections[slot.device] else { return }
        slots.addUnconfirmedWrites(connection.closeGate(slot.app), slot)
        for delivery in connection.inFlight.inOrder(of: slot.app) {
            if delivery.state.isBeingStored { slots.addUnconfirmedWrites(1, slot) }
            apply(.registrationEnded, to: delivery, on: connection)
        }
        catchUpIfRoom(connection)
    }

    /// Replaces a registration by its successor, which may have ended it, or have made it again.
    ///
    /// If it was made again, the subscription of a connected device stays, and reads the mailbox of the new one.
    /// - Returns: The former registration.
    mutating func replaceRegistration(_ registration: Registration) -> Registration? {
        let slot = registration.slot
        let former = slots.registration(slot)
        guard former?.isLive != registration.isLive || former?.generation != registration.generation else {
            slots.setRegistration(registration)
            return former
        }
        let connection = connections[slot.device]
        let gate = connection?.gates[slot.app]
        if former?.isLive ?? false {
            endRegistration(slot, at: registration.ended ?? registration.registered)
        } else if let connection {
            close(slot, fence: connection.fence)
        }
        slots.setRegistration(registration)
        if registration.isLive, let connection, let gate {
            let subscription = AppSubscription(slot.app, qualityOfService: gate.qualityOfService)
            open([subscription], on: slot.device, fence: connection.fence)
        }
        return former
    }
}
