import Crypto
import HeraldIdentity
import HeraldJSON
import HeraldModel

/// The parsed, not yet verified content of a provider token.
struct ProviderTokenClaims {
    let keyID: String
    let team: String
    /// Seconds since 1970.
    let issued: Int64
    let signature: P256.Signing.ECDSASignature
    /// Length of the token's prefix that the signature covers.
    let signedBytes: Int

    /// The reason why a token is malformed, for the provider.
    struct ParseError: Error {
        let why: String
    }

    /// Parses a token.
    ///
    /// It tolerates only deviations of APNs clients in use:
    ///
    /// - padding and the standard base 64 alphabet,
    /// - a signature in DER, which `openssl dgst` and Java produce,
    /// - `iat` as a string, with a fraction or with an exponent (RFC 7519 §2 permits the last two),
    /// - a header without `alg` and `typ`, and unknown members.
    ///
    /// If there is an `alg`, it must be ES256. Key and algorithm of the check never depend on it, nor on `jwk`, `jku` or
    /// `x5c` (RFC 8725 §3.1).
    init(_ token: UnsafeRawBufferPointer) throws(ParseError) {
        guard (1...ProviderToken.maximumBytes).contains(token.count) else {
            throw ParseError(why: "the token is too long")
        }
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ !$0.isEmpty }) else {
            throw ParseError(why: "a token has three parts, separated by dots")
        }
        signedBytes = parts[0].count + 1 + parts[1].count
        func decoded(_ part: Slice<UnsafeRawBufferPointer>, _ name: String) throws(ParseError) -> [UInt8] {
            guard let bytes = Base64.decode(UnsafeRawBufferPointer(rebasing: part)) else {
                throw ParseError(why: "the token's \(name) is not base64url")
            }
            return bytes
        }
        guard let header = JSON.Object(try decoded(parts[0], "header"), rules: Self.rules) else {
            throw ParseError(why: "the token's header is not a JSON object")
        }
        guard let claims = JSON.Object(try decoded(parts[1], "claims"), rules: Self.rules) else {
            throw ParseError(why: "the token's claims are not a JSON object")
        }
        keyID = try ProviderTokenClaims.keyID(header)
        (team, issued) = try ProviderTokenClaims.teamAndTime(claims)
        signature = try ProviderTokenClaims.signature(try decoded(parts[2], "signature"))
    }

    /// Strict: refuses every token that two parsers could understand differently (RFC 8725 §2.4).
    private static let rules = JSON.Rules(isLenient: false, maximumDepth: 32, maximumValues: 256)

    private static func keyID(_ header: JSON.Object) throws(ParseError) -> String {
        switch header["alg"] {
        case nil, .string("ES256"): break
        default: throw ParseError(why: "the token's alg is not ES256")
        }
        switch header["typ"] {
        case nil, .string: break
        default: throw ParseError(why: "the token's typ is not a string")
        }
        // Critical extensions must be refused if they are not supported (RFC 7515 §4.1.11), and none is.
        guard header["crit"] == nil else { throw ParseError(why: "the token's header has a critical extension") }
        guard let kid = header["kid"] else { throw ParseError(why: "the token has no kid: its header names the key") }
        guard case .string(let id) = kid, ProviderToken.isIdentifier(id) else {
            throw ParseError(why: "the token's kid is not ten of A-Z and 0-9")
        }
        return id
    }

    private static func teamAndTime(_ claims: JSON.Object) throws(ParseError) -> (String, Int64) {
        guard case .string(let team) = claims["iss"], ProviderToken.isIdentifier(team) else {
            throw ParseError(why: "the token's iss is not ten of A-Z and 0-9")
        }
        guard let seconds = seconds(claims["iat"]) else {
            throw ParseError(why: "the token's iat is not a number of seconds since 1970")
        }
        guard seconds <= WallTime.lastSecond else {
            let isMilliseconds = (1_000_000_000_000..<10_000_000_000_000).contains(seconds)
            throw ParseError(
                why: isMilliseconds
                    ? "the token's iat is in milliseconds: write seconds"
                    : "the token's iat is not from 0 to \(WallTime.lastSecond), in seconds since 1970"
            )
        }
        return (team, seconds)
    }

    /// The whole seconds of a number, however it is written, or of one in a text.
    private static func seconds(_ iat: JSON?) -> Int64? {
        switch iat {
        case .string(let text):
            guard case .number(let number)? = try? JSON(Array(text.utf8), rules: rules) else { return nil }
            return seconds(.number(number))
        case .number(let number):
            // Only a fraction needs rounding, which a number beyond 2^53 does not have.
            let whole = number.exactly(Int64.self) ?? number.double.flatMap { Int64(exactly: $0.rounded(.down)) }
            return whole.flatMap { $0 >= 0 ? $0 : nil }
        default:
            return nil
        }
    }

    private static func signature(_ bytes: [UInt8]) throws(ParseError) -> P256.Signing.ECDSASignature {
        // Two numbers of 32 bytes (RFC 7518 §3.4).
        if bytes.count == 64, let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes) {
            return signature
        }
        // The library accepts strict DER only: no long lengths, leading zeros or trailing bytes.
        if bytes.count <= 72, let signature = try? P256.Signing.ECDSASignature(derRepresentation: bytes) {
            return signature
        }
        throw ParseError(why: "the token's signature is neither 64 bytes nor DER")
    }
}
