package import HeraldModel

/// The moment and the address of a device's newest connection.
package struct DeviceSighting: Hashable, Sendable {
    package let device: DeviceID
    /// The end of the connection; its beginning while it is open.
    package let at: WallTime
    /// The peer's address without port; empty if it is not known.
    package let address: String

    package init(device: DeviceID, at: WallTime, address: String) {
        self.device = device
        self.at = at
        self.address = address
    }
}

/// Selection of devices for a list.
package struct DeviceSelection: Sendable {
    /// The most devices that are looked at for one part of a list.
    package static let scan = 100_000

    /// The identifier after which the part begins.
    package var after: String?
    package var limit: Int
    /// Part of an identifier, a name or a label `name=value`, in any case.
    package var text: String?
    /// Further condition.
    package var condition: (@Sendable (DeviceID) -> Bool)?

    package init(
        after: String? = nil,
        limit: Int,
        text: String? = nil,
        condition: (@Sendable (DeviceID) -> Bool)? = nil
    ) {
        self.after = after
        self.limit = limit
        self.text = text
        self.condition = condition
    }
}
