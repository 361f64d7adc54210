import HeraldModel

/// The decisions about what other nodes of the cluster do.
extension DeliveryShard {
    /// Another node has stored a notification; it is delivered as one that this node has stored.
    ///
    /// An old notification is left to the reads, which may have found and delivered a newer one already.
    /// - Returns: Whether the registration is known; if not, nothing was done.
    mutating func storedElsewhere(_ stored: StoredNotification, isNews: Bool = true, now: WallTime) -> Bool {
        guard isNews else { return true }
        let slot = stored.notification.slot
        guard slots.registration(slot)?.isLive(in: stored.generation) ?? false else { return false }
        guard let connection = connections[slot.device] else { return true }
        if connection.awaitsToken(of: slot.app) { add(.record(.storedTokenMissing), to: stored.envelope) }
        let put = StoredPut(envelope: stored.envelope, sequence: stored.sequence, tag: nil)
        deliverStored(put, on: connection, at: now)
        catchUpIfRoom(connection)
        return true
    }

    /// Ends a connection whose device another node has claimed since.
    mutating func letGo(_ device: DeviceNumber, fence: UInt64) {
        guard connection(device, fence) != nil else { return }
        dismiss(.takenOver, only: device)
        detach(device, fence: fence)
    }
}
