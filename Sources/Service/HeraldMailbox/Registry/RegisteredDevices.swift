package import HeraldModel
import Synchronization

/// Devices, for operators.
extension Registry {
    /// The registrations of a device, ended ones too.
    package func registrations(of device: DeviceNumber) -> [Registration] {
        let apps = numbers.withLock { $0.apps.all }
        return postOffice.registrations(of: device, in: apps)
    }

    /// Ends a device's connection, to this node or another one of the cluster; the device connects again.
    /// - Throws: If the claim that ends it at another node could not be written.
    package func disconnect(_ device: DeviceNumber) async throws {
        if directory.isHeldElsewhere(device) {
            // The other node lets go of a device that somebody else has claimed.
            let fence = try await withCheckedThrowingContinuation { continuation in
                directory.claim(device, for: { $0(.zero) }) { continuation.resume(with: $0) }
            }
            directory.release(device, fence: fence)
        }
        postOffice.dismiss(.disconnected, only: device)
    }
}
