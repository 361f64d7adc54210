import Crypto
package import HeraldModel

/// The key of a device's record in the log: a hash of its identifier, which may be too long for a subject.
package struct DeviceKey: Hashable, Sendable {
    /// The first twelve bytes of the SHA-256 of the identifier.
    package let bytes: [UInt8]

    package init(_ device: DeviceID) {
        bytes = Array(SHA256.hash(data: Array(device.name.utf8)).prefix(12))
    }
}
