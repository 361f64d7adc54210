package import HeraldModel

extension PostOffice {
    /// The connection of a device to this node.
    package func link(of device: DeviceNumber) -> (any DeviceLink)? { at(device) { $0.connections[device]?.link } }
}

extension PostOffice: ConnectionHolder {
    package func storedElsewhere(_ stored: StoredNotification, isNews: () -> Bool) -> Bool {
        let (now, certainTime) = (clock.now(), clock.certainTime())
        return at(stored.notification.slot.device) { shard in
            shard.holdRules.certainTime = certainTime
            return shard.storedElsewhere(stored, isNews: isNews(), now: now)
        }
    }

    package func deliverOnce(_ envelope: Envelope) -> PassedDelivery {
        let now = clock.now()
        return at(envelope.notification.slot.device) { $0.deliverOnce(envelope, now: now) }
    }

    package func letGo(_ device: DeviceNumber, fence: UInt64) {
        at(device) { $0.letGo(device, fence: fence) }
    }
}
