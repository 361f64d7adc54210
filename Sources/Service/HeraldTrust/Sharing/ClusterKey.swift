package import Crypto
import Foundation

/// The key under which the nodes of a cluster seal everything that they write to its servers.
///
/// The cluster's servers never have it. The first node makes it, and each further one gets a copy of its file.
package struct ClusterKey: Sendable {
    /// Length of the key, in bytes.
    private static let length = 32
    private static let fingerprintLength = 16

    private let secret: SymmetricKey

    /// Makes a new key.
    package init() {
        secret = SymmetricKey(size: .bits256)
    }

    /// Reads the content of a key's file: 32 bytes in base64, on one line.
    package init?(file: [UInt8]) {
        let line = String(decoding: file, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let bytes = Data(base64Encoded: line), bytes.count == Self.length else { return nil }
        secret = SymmetricKey(data: bytes)
    }

    /// The content of the key's file.
    package var file: [UInt8] {
        Array((secret.withUnsafeBytes { Data($0) }.base64EncodedString() + "\n").utf8)
    }

    /// Sixteen bytes that identify the key, and do not tell it.
    package var fingerprint: [UInt8] {
        let bytes = secret.withUnsafeBytes { Array($0) }
        return Array(SHA256.hash(data: Array("herald cluster key\n".utf8) + bytes).prefix(Self.fingerprintLength))
    }

    /// The key for records of the log and messages between nodes: 256 bits.
    package var recordKey: SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: secret,
            info: Array("herald records".utf8),
            outputByteCount: Self.length
        )
    }
}
