package import HeraldModel
import Synchronization

/// Which node of a cluster holds a device's connection.
///
/// On one node there is nothing to look up, and ``SingleNodeDirectory`` hands out fences only. A cluster's directory
/// writes the claim where all nodes see it, with the fence as the number that decides between two claims, and rings the
/// node that holds a device when something was stored for it. Order for no lost wake-up: who stores, stores first and
/// rings after; who connects, claims first and reads the mailbox after.
package protocol ConnectionDirectory: Sendable {
    /// This node holds the device's connection from now on.
    ///
    /// `done` is called once, from any thread, also before this returns: with a number greater than that of every earlier
    /// claim for the device, or with an error if the claim cannot be written; the device is then refused, and tries again.
    func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void)

    /// The connection with this fence is gone; nothing happens if a newer one was claimed.
    func release(_ device: DeviceNumber, fence: UInt64)

    /// Something was stored for a device that this node does not hold. Returns at once; may be lost: it saves time only.
    func ring(_ slot: Slot, sequence: UInt64)
}

/// The directory of a service that is one process: every device is here or nowhere.
package final class SingleNodeDirectory: ConnectionDirectory {
    private let lastFence = Atomic<UInt64>(0)

    package init() {}

    package func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void) {
        done(.success(lastFence.wrappingAdd(1, ordering: .relaxed).newValue))
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        // Nobody else asks.
    }

    package func ring(_ slot: Slot, sequence: UInt64) {
        // A device that is not here is away.
    }
}
