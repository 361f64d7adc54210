/// The service's own number for a device; never reused.
package struct DeviceNumber: Hashable, Sendable {
    package let value: UInt64

    package init(_ value: UInt64) {
        self.value = value
    }
}

/// The service's own number for an ``App``; never reused.
package struct AppNumber: Hashable, Sendable {
    package let value: UInt32

    package init(_ value: UInt32) {
        self.value = value
    }
}

/// One app on one device: the mailbox keeps one notification for each slot.
package struct Slot: Hashable, Sendable {
    package let device: DeviceNumber
    package let app: AppNumber

    package init(device: DeviceNumber, app: AppNumber) {
        self.device = device
        self.app = app
    }
}
