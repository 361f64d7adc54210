package import HeraldModel
import Synchronization

/// Devices, for operators.
extension Registry {
    /// The registrations of a device, ended ones too.
    package func registrations(of device: DeviceNumber) -> [Registration] {
        let apps = numbers.withLock { $0.apps.all }
        return postOffice.registrations(of: device, in: apps)
    }
}
