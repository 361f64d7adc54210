import Crypto
package import HeraldModel

/// The key of a device's record in the log: a hash of its identifier, which may be too long for a subject.
package struct DeviceHash: Hashable, Sendable {
    /// The first twelve bytes of the SHA-256 of the identifier.
    package let bytes: [UInt8]

    package init(_ device: DeviceID) {
        bytes = Array(SHA256.hash(data: Array(device.name.utf8)).prefix(12))
    }

    /// The key of a device's subject; nil for every other subject.
    init?(_ subject: LogSubject) {
        let parts = subject.text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[1] == "dev", let bytes = SubjectText.bytes(parts[3]), bytes.count == 12 else {
            return nil
        }
        self.bytes = bytes
    }

    /// The first eight bytes as a number.
    var number: UInt64 { bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
