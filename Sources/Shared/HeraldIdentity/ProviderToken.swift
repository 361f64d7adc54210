package import Crypto
package import HeraldModel

/// A provider token: a JSON Web Token (RFC 7519) signed with ES256 that names a key and its team ("Establishing a
/// token-based connection to APNs").
package enum ProviderToken {
    /// The longest token, in bytes.
    ///
    /// A token as in Apple's guide has some 210.
    package static let maximumBytes = 2048
    /// Lifetime of a token after `iat`.
    package static let lifetime = Duration.seconds(3600)
    /// The most time that the provider's clock may be ahead.
    package static let clockSkew = Duration.seconds(60)

    /// Whether a text has the form of a key or team identifier: ten of `A`-`Z` and `0`-`9`.
    package static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// Makes a token with the private key of the file `AuthKey_<key id>.p8`; `iat` is in whole seconds.
    /// - Returns: The value after `bearer ` in the field `authorization`.
    /// - Throws: An error of the signing library.
    package static func sign(
        key: P256.Signing.PrivateKey,
        keyID: String,
        team: String,
        issued: WallTime
    ) throws -> String {
        let header = Base64.encode(Array("{\"alg\":\"ES256\",\"kid\":\"\(keyID)\"}".utf8))
        let claims = Base64.encode(Array("{\"iss\":\"\(team)\",\"iat\":\(issued.seconds)}".utf8))
        let signed = header + "." + claims
        let signature = try key.signature(for: SHA256.hash(data: Array(signed.utf8)))
        return signed + "." + Base64.encode(Array(signature.rawRepresentation))
    }
}
