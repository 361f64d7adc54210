package import HeraldModel

/// One connection of a device, as the post office sees it.
///
/// Called from any thread, under a lock of the post office: it notes the order for its own event loop and returns at
/// once.
package protocol DeviceLink: AnyObject, Sendable {
    /// Send this to the device, when its window allows; order within a topic is the order of the calls.
    func deliver(_ delivery: Delivery)
    /// Close: the device has a newer connection, or the operator wants it gone. Deliver nothing more.
    func dismiss(_ reason: DismissalReason)
}

/// An app whose notifications a connection wants.
package struct WantedApp: Hashable, Sendable {
    package let number: AppNumber
    /// 0 or 1.
    package let qualityOfService: UInt8

    package init(_ number: AppNumber, qualityOfService: UInt8) {
        self.number = number
        self.qualityOfService = qualityOfService
    }
}

/// Why the service ends a device's connection.
package enum DismissalReason: Hashable, Sendable {
    /// A newer connection of the same device took over.
    case takenOver
    /// The device's certificate was revoked.
    case revoked
    /// The service stops.
    case shuttingDown
}

/// A notification on its way to a device.
package struct Delivery: Sendable {
    package let number: DeliveryNumber
    package let letter: Letter
    package let app: AppNumber
    /// 1: wait for the device's acknowledgement; 0: done once written.
    package let qualityOfService: UInt8

    package init(number: DeliveryNumber, letter: Letter, app: AppNumber, qualityOfService: UInt8) {
        self.number = number
        self.letter = letter
        self.app = app
        self.qualityOfService = qualityOfService
    }
}

/// Names a delivery on one connection; reused only after the delivery has ended, with another stamp.
package struct DeliveryNumber: Hashable, Sendable {
    package let index: UInt32
    package let stamp: UInt32

    package init(index: UInt32, stamp: UInt32) {
        self.index = index
        self.stamp = stamp
    }
}

/// How a delivery ended.
package enum DeliveryResult: Hashable, Sendable {
    /// The device acknowledged it.
    case acknowledged
    /// The device acknowledged it with a refusal: not sent again ([MQTT-4.4.0-2]).
    case refused
    /// Written to a connection that acknowledges nothing.
    case written
    /// Larger than the device accepts: counts as delivered ([MQTT-3.1.2-25]).
    case tooLarge
    /// Its time was over before it could be sent.
    case expired
}
