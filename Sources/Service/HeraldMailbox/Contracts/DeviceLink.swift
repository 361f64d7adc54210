package import HeraldModel

/// The courier's end of a device's connection.
///
/// Called from any thread, under a lock of the post office: an implementation hands the call to its event loop and returns
/// at once.
package protocol DeviceLink: AnyObject, Sendable {
    /// Sends a notification when the device's window allows it; the order within a topic is the order of the calls.
    func deliver(_ delivery: Delivery)
    /// Closes the connection and delivers nothing more.
    func dismiss(_ reason: DismissalReason)
}

/// A connection's subscription to the notifications of an app.
package struct AppSubscription: Hashable, Sendable {
    package let number: AppNumber
    /// 0 or 1.
    package let qualityOfService: UInt8

    package init(_ number: AppNumber, qualityOfService: UInt8) {
        self.number = number
        self.qualityOfService = qualityOfService
    }
}

/// The reason why the service closes a device's connection.
package enum DismissalReason: Hashable, Sendable {
    /// A newer connection of the same device took over.
    case takenOver
    /// The device's certificate was revoked.
    case revoked
    /// An operator ended the connection; the device comes back at once.
    case disconnected
    /// An operator ended the connection; the device is to stay away for a while.
    case sentAway
    /// The service is stopping, or its node was cut off from the cluster.
    case shuttingDown
}

/// A notification on its way to a device.
package struct Delivery: Sendable {
    package let number: DeliveryNumber
    package let envelope: Envelope
    package let app: AppNumber
    /// 1: the device acknowledges it; 0: it is finished when written.
    package let qualityOfService: UInt8
}

/// Identifies a delivery on one connection; an index is reused with another stamp.
package struct DeliveryNumber: Hashable, Sendable {
    package let index: UInt32
    package let stamp: UInt32

    package init(index: UInt32, stamp: UInt32) {
        self.index = index
        self.stamp = stamp
    }
}

/// The result of a delivery.
package enum DeliveryResult: Hashable, Sendable {
    /// The device acknowledged it.
    case acknowledged
    /// The device refused it: not sent again ([MQTT-4.4.0-2]).
    case refused
    /// Written at QoS 0.
    case written
    /// Larger than the device accepts: counts as delivered ([MQTT-3.1.2-25]).
    case tooLarge
    /// It expired before it could be sent.
    case expired
    /// The device's client ends the connection each time it comes: not sent again.
    case endsConnection
}
