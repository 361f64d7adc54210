package import HeraldMailbox
package import HeraldModel
package import HeraldTrust
import Synchronization

/// Connections of devices that are not in the ledger yet: the newest of each device.
package final class DeviceSightings: Sendable {
    private let sightings = Mutex<[DeviceID: DeviceSighting]>([:])

    /// There is something to write at once: devices that had never connected, or that took an announcement.
    package let urgent = Signal()

    package init() {}

    func note(_ sighting: DeviceSighting, isNew: Bool = false) {
        sightings.withLock { sightings in
            var sighting = sighting
            sighting.announcement = sightings[sighting.device]?.announcement
            sightings[sighting.device] = sighting
        }
        if isNew { urgent.send() }
    }

    /// Notes the version of the announcement that a connected device has.
    func note(announcement version: Int64, of sighting: DeviceSighting) {
        sightings.withLock { $0[sighting.device, default: sighting].announcement = version }
        urgent.send()
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
            for one in former {
                sightings[one.device, default: one].announcement =
                    sightings[one.device]?.announcement ?? one.announcement
            }
        }
    }
}
