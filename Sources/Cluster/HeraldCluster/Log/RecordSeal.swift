package import Crypto
import CryptoExtras
import Foundation
package import NIOCore
import Synchronization

/// Seals what the nodes of a cluster write to NATS, and opens it: AES-256-GCM-SIV (RFC 8452), bound to the place of the message.
///
/// One key serves all nodes, so the nonces of all must differ. Each process begins at a random one of 2⁹⁶, and counts. Two of a
/// million processes with 2⁴⁰ messages each meet with a probability of 2⁻¹⁶. Unlike in AES-GCM, a nonce that comes twice, as in
/// a machine that is restored from a snapshot, only shows whether two messages of one place are equal.
package struct RecordSeal: Sendable {
    private static let nonceBytes = 12
    private static let tagBytes = 16

    /// The nonces of this process.
    private final class Nonces: Sendable {
        private let begin = UInt32.random(in: 0 ... .max)
        private let next = Atomic(UInt64.random(in: 0 ... .max))

        func with<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
            let number = next.wrappingAdd(1, ordering: .relaxed).newValue
            return try withUnsafeBytes(of: (number, begin)) { bytes in
                try body(UnsafeRawBufferPointer(rebasing: bytes.prefix(RecordSeal.nonceBytes)))
            }
        }
    }

    private let key: SymmetricKey
    private let incarnation: UInt32
    private let nonces: Nonces

    /// A seal for messages that belong to no incarnation: those of ``LogStream/meta``.
    /// - Parameter key: 256 bits.
    package init(_ key: SymmetricKey) {
        self.init(key: key, incarnation: 0, nonces: Nonces())
    }

    private init(key: SymmetricKey, incarnation: UInt32, nonces: Nonces) {
        self.key = key
        self.incarnation = incarnation
        self.nonces = nonces
    }

    /// The seal for messages of one incarnation of the cluster; 0 for none.
    package func of(_ incarnation: UInt32) -> RecordSeal {
        RecordSeal(key: key, incarnation: incarnation, nonces: nonces)
    }

    /// Seals a payload, which may be empty.
    ///
    /// `condition` is the sequence that its subject's newest message must have; nil for none.
    /// - Returns: The nonce, the encrypted payload and the tag; nil if the key has another length.
    package func seal(_ payload: ByteBuffer, at subject: String, if condition: UInt64? = nil) -> ByteBuffer? {
        let box = try? payload.withUnsafeReadableBytes { message in
            try withPlace(subject, condition) { place in
                try nonces.with { nonce in
                    try AES.GCM._SIV.seal(
                        message,
                        using: key,
                        nonce: AES.GCM._SIV.Nonce(data: nonce),
                        authenticating: place
                    )
                }
            }
        }
        return box?.combined.withUnsafeBytes { ByteBuffer(bytes: $0) }
    }

    /// Opens a payload; nil if it was sealed under another key, or for another place, or was changed since.
    package func open(_ sealed: ByteBuffer, at subject: String, if condition: UInt64? = nil) -> ByteBuffer? {
        guard sealed.readableBytes >= Self.nonceBytes + Self.tagBytes else { return nil }
        let payload = try? sealed.withUnsafeReadableBytes { bytes in
            try withPlace(subject, condition) { place in
                try AES.GCM._SIV.open(AES.GCM._SIV.SealedBox(combined: bytes), using: key, authenticating: place)
            }
        }
        return payload?.withUnsafeBytes { ByteBuffer(bytes: $0) }
    }

    /// The associated data: the incarnation, the condition, and the subject.
    private func withPlace<Value>(
        _ subject: String,
        _ condition: UInt64?,
        _ body: (UnsafeRawBufferPointer) throws -> Value
    ) rethrows -> Value {
        let head = 13
        var subject = subject
        return try subject.withUTF8 { text in
            try withUnsafeTemporaryAllocation(byteCount: head + text.count, alignment: 1) { place in
                place.storeBytes(of: incarnation.bigEndian, as: UInt32.self)
                place.storeBytes(of: condition == nil ? 0 : 1, toByteOffset: 4, as: UInt8.self)
                place.storeBytes(of: (condition ?? 0).bigEndian, toByteOffset: 5, as: UInt64.self)
                UnsafeMutableRawBufferPointer(rebasing: place[head...]).copyBytes(from: text)
                return try body(UnsafeRawBufferPointer(place))
            }
        }
    }
}
