package import HeraldModel
import Synchronization

/// The node of a cluster that holds a device's connection.
///
/// ``SingleNodeDirectory`` only issues fences. A cluster's directory appends each claim to the log that all nodes follow; the
/// fence is the claim's sequence there, so that the last claim wins. It notifies the node of a device when another node has stored something. No wake-up is lost: a
/// node stores before it notifies, and claims before it reads the mailbox.
package protocol ConnectionDirectory: Sendable {
    /// Claims a device's connection for this node.
    ///
    /// `done` is called once, from any thread, possibly before this returns: with a fence greater than every earlier one of
    /// the device, or with an error if the claim could not be written. The device is refused then, and tries again.
    func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void)

    /// Releases the claim with this fence; nothing happens if there is a newer one.
    func release(_ device: DeviceNumber, fence: UInt64)

    /// Notifies the node of a device that something was stored. Returns at once; a lost message only costs time.
    func notifyHolder(of slot: Slot, sequence: UInt64)
}

/// The directory of a service of one process: every device is connected here or nowhere.
package final class SingleNodeDirectory: ConnectionDirectory {
    private let lastFence = Atomic<UInt64>(0)

    package init() {}

    package func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void) {
        done(.success(lastFence.wrappingAdd(1, ordering: .relaxed).newValue))
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        // No other node.
    }

    package func notifyHolder(of slot: Slot, sequence: UInt64) {
        // No other node.
    }
}
