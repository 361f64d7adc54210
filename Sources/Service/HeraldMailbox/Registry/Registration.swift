package import HeraldModel

/// The registration of an app on a device.
package struct Registration: Hashable, Sendable {
    package let slot: Slot
    /// The number of times that the app was removed from the device; a token is valid for one generation.
    package var generation: UInt32
    package var isLive: Bool
    /// The moment in which it was made, or made again.
    package var registered: WallTime
    /// The moment of the last removal; nil if there was none.
    package var ended: WallTime?
    /// Whether the user wants the app's notifications.
    package var isEnabled: Bool

    package init(
        slot: Slot,
        generation: UInt32,
        isLive: Bool,
        registered: WallTime,
        ended: WallTime? = nil,
        isEnabled: Bool = true
    ) {
        self.slot = slot
        self.generation = generation
        self.isLive = isLive
        self.registered = registered
        self.ended = ended
        self.isEnabled = isEnabled
    }

    package func isLive(in generation: UInt32) -> Bool { isLive && self.generation == generation }
}
