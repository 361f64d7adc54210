import Crypto
import Foundation

/// The key under which the nodes of a cluster seal the trust that they share.
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

    /// Encrypts bytes that open under this key and this name alone.
    package func seal(_ bytes: [UInt8], as name: String) throws -> [UInt8] {
        Array(try ChaChaPoly.seal(bytes, using: secret, authenticating: Array(name.utf8)).combined)
    }

    /// Decrypts bytes; nil if they were sealed under another key or name, or changed since.
    package func open(_ sealed: [UInt8], as name: String) -> [UInt8]? {
        guard let box = try? ChaChaPoly.SealedBox(combined: sealed),
            let bytes = try? ChaChaPoly.open(box, using: secret, authenticating: Array(name.utf8))
        else { return nil }
        return Array(bytes)
    }
}
