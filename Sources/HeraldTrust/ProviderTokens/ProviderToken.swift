package import Crypto
package import HeraldModel

/// A provider token: a JSON Web Token (RFC 7519) signed with ES256 that names a key and its team ("Establishing a
/// token-based connection to APNs").
package enum ProviderToken {
    /// The longest token that is looked at, in bytes.
    ///
    /// One as Apple's guide makes it has some 210.
    package static let maximumBytes = 2048
    /// How long a token may be used after it was issued.
    package static let lifetime = Duration.seconds(3600)
    /// How far ahead of ours the clock of its maker may be.
    package static let clockSkew = Duration.seconds(60)

    /// Makes a token.
    /// - Parameters:
    ///   - key: The private key of the file `AuthKey_<key id>.p8`.
    ///   - keyID: The key's identifier, `kid`.
    ///   - team: The key's team, `iss`.
    ///   - issued: Its whole seconds become `iat`.
    /// - Returns: What follows `bearer ` in the field `authorization`.
    /// - Throws: What the signing library throws; it has no reason to.
    package static func sign(
        key: P256.Signing.PrivateKey,
        keyID: String,
        team: String,
        issued: WallTime
    ) throws -> String {
        let header = TokenBase64.encode("{\"alg\":\"ES256\",\"kid\":\"\(keyID)\"}".utf8)
        let claims = TokenBase64.encode("{\"iss\":\"\(team)\",\"iat\":\(issued.seconds)}".utf8)
        let signed = header + "." + claims
        let signature = try key.signature(for: SHA256.hash(data: Array(signed.utf8)))
        return signed + "." + TokenBase64.encode(signature.rawRepresentation)
    }
}
