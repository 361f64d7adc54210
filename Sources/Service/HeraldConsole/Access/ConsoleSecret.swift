import Crypto
import Foundation
import HeraldModel

/// A random secret that a caller shows as proof.
enum ConsoleSecret {
    /// A new secret in base64 for addresses, from `bytes` random bytes of the system.
    static func make(bytes: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<bytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return Data(random).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// A short name for something that has a secret: 8 hexadecimal digits.
    static func makeID() -> String { Hex.random(bytes: 4) }
}

/// SHA-256 of a secret, which is kept instead of it.
///
/// Secrets have 128 bits or more, so a fast hash without salt is enough.
struct SecretDigest: Hashable, Sendable {
    let hexadecimal: String

    init(_ secret: String) {
        hexadecimal = Hex.text(SHA256.hash(data: Data(secret.utf8)))
    }

    /// A stored digest; nil if it is none.
    init?(hexadecimal: String) {
        guard hexadecimal.utf8.count == 64, hexadecimal.allSatisfy({ "0123456789abcdef".contains($0) }) else {
            return nil
        }
        self.hexadecimal = hexadecimal
    }
}
