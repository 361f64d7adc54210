import HeraldIdentity
package import HeraldModel

/// The parts of a provider token in plain text, for people who look for their mistake.
package struct ProviderTokenReading: Hashable, Sendable {
    /// JSON as the token has it; nil if the part is not base64url, or not text.
    package let header: String?
    package let claims: String?
    /// The key and the team that the token names, and its `iat`; nil if the token is malformed.
    package let keyID: String?
    package let team: String?
    package let issued: WallTime?

    /// Reads a token: the value after `bearer ` in the field `authorization`.
    package init(_ token: [UInt8]) {
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        func text(_ index: Int) -> String? {
            guard parts.indices.contains(index), token.count <= ProviderToken.maximumBytes else { return nil }
            let bytes = Array(parts[index]).withUnsafeBytes { Base64.decode($0) }
            return bytes.flatMap { String(validating: $0, as: UTF8.self) }
        }
        header = text(0)
        claims = text(1)
        let parsed = token.withUnsafeBytes { try? ProviderTokenClaims($0) }
        keyID = parsed?.keyID
        team = parsed?.team
        issued = parsed.map { WallTime(seconds: $0.issued) }
    }
}
