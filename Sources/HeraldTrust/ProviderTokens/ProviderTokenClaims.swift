import Crypto
import HeraldModel

/// What a provider token says of itself, before anything of it is believed.
struct ProviderTokenClaims {
    let keyID: String
    let team: String
    /// Seconds since 1970.
    let issued: Int64
    let signature: P256.Signing.ECDSASignature
    /// Bytes of the token, from its first, that the signature covers.
    let signedBytes: Int

    /// Why a token cannot be read, in words for its maker.
    struct Flaw: Error {
        let why: String
    }

    /// Takes a token apart.
    ///
    /// Only what a client of APNs in use has reason to send is tolerated: padding and the standard alphabet, a signature
    /// in DER (what `openssl dgst` and Java make), `iat` as a string or with a fraction (RFC 7519 §2 permits it), a header without `alg` and `typ`, members that
    /// nobody asked for. An `alg` that is there must be ES256; which key and which algorithm check the signature never
    /// depends on it, nor on `jwk`, `jku` or `x5c` (RFC 8725 §3.1).
    init(_ token: UnsafeRawBufferPointer) throws(Flaw) {
        guard (1...ProviderToken.maximumBytes).contains(token.count) else { throw Flaw(why: "the token is too long") }
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ !$0.isEmpty }) else {
            throw Flaw(why: "a token has three parts, separated by dots")
        }
        signedBytes = parts[0].count + 1 + parts[1].count
        func decoded(_ part: Slice<UnsafeRawBufferPointer>, _ name: String) throws(Flaw) -> [UInt8] {
            guard let bytes = TokenBase64.decode(UnsafeRawBufferPointer(rebasing: part)) else {
                throw Flaw(why: "the token's \(name) is not base64url")
            }
            return bytes
        }
        guard let header = TokenObject(try decoded(parts[0], "header")) else {
            throw Flaw(why: "the token's header is not a JSON object")
        }
        guard let claims = TokenObject(try decoded(parts[1], "claims")) else {
            throw Flaw(why: "the token's claims are not a JSON object")
        }
        keyID = try ProviderTokenClaims.keyID(header)
        (team, issued) = try ProviderTokenClaims.teamAndTime(claims)
        signature = try ProviderTokenClaims.signature(try decoded(parts[2], "signature"))
    }

    private static func keyID(_ header: TokenObject) throws(Flaw) -> String {
        switch header["alg"] {
        case nil, .string("ES256"): break
        default: throw Flaw(why: "the token's alg is not ES256")
        }
        switch header["typ"] {
        case nil, .string: break
        default: throw Flaw(why: "the token's typ is not a string")
        }
        // What is marked critical must be understood or refused (RFC 7515 §4.1.11), and we understand no extension.
        guard header["crit"] == nil else { throw Flaw(why: "the token's header has a critical extension") }
        guard case .string(let id) = header["kid"], ProviderKey.isIdentifier(id) else {
            throw Flaw(why: "the token's kid is not ten of A-Z and 0-9")
        }
        return id
    }

    private static func teamAndTime(_ claims: TokenObject) throws(Flaw) -> (String, Int64) {
        guard case .string(let team) = claims["iss"], ProviderKey.isIdentifier(team) else {
            throw Flaw(why: "the token's iss is not ten of A-Z and 0-9")
        }
        switch claims["iat"] {
        case .integer(let seconds) where seconds >= 0, .decimal(let seconds) where seconds >= 0:
            return (team, seconds)
        case .string(let text):
            let digits = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard digits, let seconds = Int64(text) else { fallthrough }
            return (team, seconds)
        default:
            throw Flaw(why: "the token's iat is not in seconds since 1970")
        }
    }

    private static func signature(_ bytes: [UInt8]) throws(Flaw) -> P256.Signing.ECDSASignature {
        // The two numbers of 32 bytes that RFC 7518 §3.4 wants.
        if bytes.count == 64, let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes) {
            return signature
        }
        // The library's decoder takes DER alone: no long lengths, no leading zeros, nothing after it.
        if bytes.count <= 72, let signature = try? P256.Signing.ECDSASignature(derRepresentation: bytes) {
            return signature
        }
        throw Flaw(why: "the token's signature has neither 64 bytes nor the form of DER")
    }
}
