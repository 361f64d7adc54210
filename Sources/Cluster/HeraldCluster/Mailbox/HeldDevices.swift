package import HeraldModel

/// The connections that a node holds, and the rules for rings and claims of other nodes that concern them.
///
/// A ring says that some node has stored a notification. It is news only if no read of the slot had to contain it: the read
/// after the claim, or a later one. Otherwise the notification may have been delivered and removed long ago.
package struct HeldDevices: Sendable {
    private struct Held {
        var fence: UInt64
        /// The bounds of the reads after the first, by app.
        var reads: [AppNumber: UInt64] = [:]
    }

    private var held: [DeviceNumber: Held] = [:]

    package init() {}

    /// The fence of a device's connection here; nil if there is none.
    package func fence(of device: DeviceNumber) -> UInt64? { held[device]?.fence }

    /// This node has claimed a device.
    ///
    /// `newest` is the newest claim or release of it that the node has seen in the log; nil if there is none.
    /// - Returns: false if a newer one is known already: the node does not serve the connection.
    package mutating func claimed(_ device: DeviceNumber, fence: UInt64, newest: UInt64?) -> Bool {
        guard fence >= newest ?? 0, fence > held[device]?.fence ?? 0 else { return false }
        held[device] = Held(fence: fence)
        return true
    }

    /// The connection with this fence is gone.
    /// - Returns: Whether it was the device's newest.
    @discardableResult
    package mutating func released(_ device: DeviceNumber, fence: UInt64) -> Bool {
        guard held[device]?.fence == fence else { return false }
        held[device] = nil
        return true
    }

    /// A read of a slot begins, which contains everything up to `bound`.
    package mutating func reads(_ slot: Slot, bound: UInt64) {
        held[slot.device]?.reads[slot.app] = bound
    }

    /// Whether a ring is news: the reads of the slot may lack its notification.
    package func isNews(_ sequence: UInt64, of slot: Slot) -> Bool {
        guard let device = held[slot.device] else { return false }
        return sequence > max(device.fence, device.reads[slot.app] ?? 0)
    }

    /// A claim of a device has appeared in the log.
    /// - Returns: The fence of the older connection here, which this node lets go; nil if there is none.
    package mutating func saw(claim sequence: UInt64, of device: DeviceNumber) -> UInt64? {
        guard let fence = held[device]?.fence, fence < sequence else { return nil }
        held[device] = nil
        return fence
    }
}
