package import HeraldModel

/// The moment and the address of a device's newest connection.
package struct DeviceSighting: Hashable, Sendable {
    /// How much newer a sighting must be than the one that other nodes know, before they learn of it.
    ///
    /// Each is a write to the log of a cluster.
    package static let sharedEvery = Duration.seconds(8 * 3600)

    package let device: DeviceID
    /// The end of the connection; its beginning while it is open.
    package let at: WallTime
    /// The peer's address without port; empty if it is not known.
    package let address: String
    /// The version of the announcement that the device has; nil if it has not said so since the last writing.
    package var announcement: Int64?

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
    /// Only devices that do not have this announcement yet.
    package var lacking: Int64?
    /// Labels that a device must have, all of them.
    package var labels: [LabelFilter] = []
    /// The latest moment at which a device was seen, or was made if it never was; nil for any, and revoked ones, too.
    package var unseenSince: WallTime?
    /// Whether revoked devices are left out in any case.
    package var isUnrevoked = false
    /// Whether only devices are wanted that have never connected and are not revoked.
    package var isUnused = false
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

    /// Whether every device is wanted.
    package var isAll: Bool {
        text == nil && labels.isEmpty && unseenSince == nil && !isUnrevoked && !isUnused && lacking == nil
            && condition == nil
    }
}
