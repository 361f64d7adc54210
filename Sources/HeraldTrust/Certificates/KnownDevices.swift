import Crypto
import HeraldModel
import Synchronization
import X509

/// What the certificates of devices came to, by their bytes: a device that comes back is not read all over again.
///
/// Reading a certificate takes some 50 µs, finding what it came to 3. Remembered is only what follows from the bytes and
/// from the authority, which is one for ever; whether the certificate is in force and not revoked is judged each time. A
/// refused one is not remembered.
final class KnownDevices: Sendable {
    struct Device: Sendable {
        let identity: DeviceIdentity
        let begins: WallTime
        let serialNumber: Certificate.SerialNumber
    }

    /// The SHA-256 of a certificate's bytes.
    struct Digest: Hashable, Sendable {
        private let words: (UInt64, UInt64, UInt64, UInt64)

        init(_ der: [UInt8]) {
            words = SHA256.hash(data: der).withUnsafeBytes { bytes in
                (
                    bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                    bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
                    bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self),
                    bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
                )
            }
        }

        /// Where it stands in a table.
        var hash: UInt64 { words.0 }

        static func == (left: Digest, right: Digest) -> Bool { left.words == right.words }

        func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
    }

    private struct Entry: Sendable {
        let digest: Digest
        let device: Device
    }

    private let entries: Mutex<BoundedCache<Entry>>

    /// - Parameter capacity: How many devices are remembered; some 300 bytes each.
    init(capacity: Int) {
        entries = Mutex(BoundedCache(capacity: capacity))
    }

    func device(_ digest: Digest) -> Device? {
        entries.withLock { $0.first(hash: digest.hash) { $0.digest == digest }?.device }
    }

    func remember(_ device: Device, as digest: Digest) {
        entries.withLock { $0.insert(Entry(digest: digest, device: device), hash: digest.hash) }
    }
}
