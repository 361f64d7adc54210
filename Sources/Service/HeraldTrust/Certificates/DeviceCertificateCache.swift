import Crypto
import HeraldModel
import Synchronization
import X509

/// Cache of checked device certificates, by the hash of their bytes.
///
/// Parsing a certificate takes some 50 µs, a look-up 3. An entry has only facts that follow from the bytes and from the
/// authority, which never changes. Validity and revocation are checked each time. Refused certificates are not cached.
final class DeviceCertificateCache: Sendable {
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

        /// The hash in a ``BoundedCache``.
        var hash: UInt64 { words.0 }

        static func == (left: Digest, right: Digest) -> Bool { left.words == right.words }

        func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
    }

    private struct Entry: Sendable {
        let digest: Digest
        let device: Device
    }

    private let entries: Mutex<BoundedCache<Entry>>

    /// - Parameter capacity: The most devices; some 300 bytes each.
    init(capacity: Int) {
        entries = Mutex(BoundedCache(capacity: capacity))
    }

    func device(_ digest: Digest) -> Device? {
        entries.withLock { $0.first(hash: digest.hash) { $0.digest == digest }?.device }
    }

    func insert(_ device: Device, as digest: Digest) {
        entries.withLock { $0.insert(Entry(digest: digest, device: device), hash: digest.hash) }
    }
}
