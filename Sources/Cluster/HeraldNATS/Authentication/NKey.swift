import Crypto
import Foundation

/// Ed25519 key pair of a NATS user, from its seed (`SU…`).
package struct NKey: Sendable {
    /// Public half, as servers write it (`U…`).
    package let publicKey: String
    private let key: Curve25519.Signing.PrivateKey

    /// Marks a seed; with the kind of the key in the lowest three bits and the five highest of the next byte.
    private static let seedPrefix: UInt8 = 18 << 3
    /// Marks a user's key.
    private static let userPrefix: UInt8 = 20 << 3
    private static let keyBytes = 32

    /// Reads a seed.
    /// - Throws: ``NATSError/Kind/badSetting`` with what is wrong. The text itself is not repeated.
    package init(seed: String) throws(NATSError) {
        guard let bytes = Base32.decode(seed), bytes.count == 2 + Self.keyBytes + 2 else {
            throw NATSError(.badSetting, "this is not the seed of an nkey: 58 characters that begin with SU")
        }
        let (body, sum) = (bytes.dropLast(2), bytes.suffix(2))
        guard Self.checksum(body) == sum.reversed().reduce(UInt16(0), { $0 << 8 | UInt16($1) }) else {
            throw NATSError(.badSetting, "the seed of the nkey is damaged: its checksum is wrong")
        }
        guard bytes[0] & 0xF8 == Self.seedPrefix, (bytes[0] & 7) << 5 | bytes[1] >> 3 == Self.userPrefix else {
            throw NATSError(.badSetting, "the nkey is not a user's seed: that begins with SU")
        }
        do {
            key = try Curve25519.Signing.PrivateKey(rawRepresentation: body.dropFirst(2))
        } catch {
            throw NATSError(.badSetting, "the seed of the nkey is not an Ed25519 key")
        }
        let named = [Self.userPrefix] + Array(key.publicKey.rawRepresentation)
        let publicSum = Self.checksum(named)
        publicKey = Base32.encode(
            named + [UInt8(truncatingIfNeeded: publicSum), UInt8(truncatingIfNeeded: publicSum >> 8)]
        )
    }

    /// Makes the seed of a new key.
    package static func makeSeed() -> String {
        let bytes =
            [seedPrefix | userPrefix >> 5, userPrefix << 3] + Array(Curve25519.Signing.PrivateKey().rawRepresentation)
        let sum = checksum(bytes)
        return Base32.encode(bytes + [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)])
    }

    /// Signature of a server's nonce, in base 64 of URLs without padding.
    func signature(of nonce: String) throws(NATSError) -> String {
        do {
            return Self.base64URL(try key.signature(for: Array(nonce.utf8)))
        } catch {
            throw NATSError(.badSetting, "the nkey cannot sign: \(error)")
        }
    }

    private static func base64URL(_ bytes: Data) -> String {
        bytes.base64EncodedString()
            .replacing("+", with: "-")
            .replacing("/", with: "_")
            .replacing("=", with: "")
    }

    /// CRC-16/XMODEM: polynomial 0x1021, begun with 0.
    static func checksum(_ bytes: some Sequence<UInt8>) -> UInt16 {
        var sum: UInt16 = 0
        for byte in bytes {
            sum ^= UInt16(byte) << 8
            for _ in 0..<8 { sum = sum & 0x8000 != 0 ? sum << 1 ^ 0x1021 : sum << 1 }
        }
        return sum
    }
}
