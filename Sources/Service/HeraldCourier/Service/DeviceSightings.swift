package import HeraldModel
package import HeraldTrust
import Synchronization

/// Connections of devices that are not in the ledger yet: the newest of each device.
package final class DeviceSightings: Sendable {
    private let sightings = Mutex<[DeviceID: DeviceSighting]>([:])

    package init() {}

    func note(_ sighting: DeviceSighting) {
        sightings.withLock { $0[sighting.device] = sighting }
    }

    /// The newest connection of a device, unless the ledger has it.
    package func newest(of device: DeviceID) -> DeviceSighting? { sightings.withLock { $0[device] } }

    package func take() -> [DeviceSighting] {
        sightings.withLock { sightings in
            defer { sightings = [:] }
            return Array(sightings.values)
        }
    }

    /// Puts back what could not be written, unless there is newer.
    package func putBack(_ former: some Sequence<DeviceSighting>) {
        sightings.withLock { sightings in
            for one in former where sightings[one.device] == nil { sightings[one.device] = one }
        }
    }
}
