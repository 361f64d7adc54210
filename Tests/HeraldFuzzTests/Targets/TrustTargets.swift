import Crypto
import Foundation
import HeraldModel
import X509

@testable import HeraldIdentity
@testable import HeraldTrust

extension FuzzTarget {
    static let trust: [FuzzTarget] = [
        FuzzTarget("jwt", upTo: 2100, jsonWebToken),
        FuzzTarget("jwt-claims", upTo: 512, signedClaims),
        FuzzTarget("device-tokens", upTo: 32, deviceToken),
        FuzzTarget("crl", upTo: 4096, revocationList),
        FuzzTarget("certificates", upTo: 4096, certificate),
        FuzzTarget("certificate-requests", upTo: 4096, certificateRequest),
        FuzzTarget("trust-files", upTo: 4096, trustFile),
    ]

    private static let now = WallTime(seconds: 1_800_000_000)

    // MARK: - Provider tokens

    private static let tokenKey: P256.Signing.PrivateKey = {
        guard let key = try? P256.Signing.PrivateKey(rawRepresentation: Array(1...32)) else {
            fatalError("the private key of the fuzz targets is invalid")
        }
        return key
    }()

    private static let verifier = ProviderTokenVerifier(
        credentials: CredentialTable(
            keys: [
                ProviderKey(
                    id: "ABC123DEFG",
                    team: "DEF123GHIJ",
                    topics: [],
                    environments: [.production],
                    publicKey: tokenKey.publicKey,
                    created: WallTime(seconds: 0)
                )
            ],
            claims: TopicClaims(version: 0, [])
        )
    )

    /// A token: valid only for the team of its key, and the second time as the first.
    @Sendable
    private static func jsonWebToken(_ bytes: [UInt8]) {
        let verdict = verifier.verify(bytes, now: now)
        check(verifier.verify(bytes, now: now) == verdict, "the cache disagrees")
        switch verdict {
        case .valid(let identity):
            check(identity.team == "DEF123GHIJ" && identity.keyID == "ABC123DEFG", "a token of another team")
            check(identity.issued <= now + ProviderToken.clockSkew, "a token of the future")
            check(identity.issued >= now - ProviderToken.lifetime, "an expired token")
        case .refused(_, let why), .unknownKey(let why):
            check(why.utf8.count < 200, "a long explanation")
            check(why.utf8.allSatisfy { $0 >= 0x20 }, "a control character in an explanation")
        }
    }

    /// Claims that the holder of the key signs: any of them, without a trap.
    @Sendable
    private static func signedClaims(_ bytes: [UInt8]) {
        let header = Base64.encode(Array(#"{"alg":"ES256","kid":"ABC123DEFG"}"#.utf8))
        let text = Array("\(header).\(Base64.encode(bytes))".utf8)
        guard let signature = try? tokenKey.signature(for: Data(text)) else { fatalError("no signature") }
        let token = text + Array(".\(Base64.encode(Array(signature.rawRepresentation)))".utf8)
        jsonWebToken(token)
        var wrong = token
        wrong[text.count - 1] = wrong[text.count - 1] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        if case .valid = verifier.verify(wrong, now: now), wrong != token { check(false, "a changed token is valid") }
    }

    // MARK: - Device tokens

    private static let seal: TokenSeal = {
        let secret = Data(Array(1...32)).base64EncodedString()
        let json = #"{"keys":[{"id":1,"created":"2026-01-01T00:00:00Z","secret":"\#(secret)"}]}"#
        guard let ring = try? TokenKeyRing(json: Array(json.utf8)) else { fatalError("no key ring") }
        return TokenSeal(keys: ring, cacheCapacity: 16)
    }()

    /// Bytes that the service did not make are not a token; bytes that it made are one, and no others are.
    @Sendable
    private static func deviceToken(_ bytes: [UInt8]) {
        if let token = DeviceToken(bytes: bytes), let contents = seal.open(token) {
            check(seal.seal(contents) == token, "a forged token is valid")
        }
        let words = stride(from: 0, to: min(bytes.count, 16), by: 4).map { start in
            bytes[start..<min(start + 4, bytes.count)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        func word(_ index: Int) -> UInt32 { index < words.count ? words[index] : 0 }
        let contents = TokenContents(
            slot: Slot(device: DeviceNumber(UInt64(word(0)) << 32 | UInt64(word(1))), app: AppNumber(word(2))),
            generation: word(3)
        )
        let token = seal.seal(contents)
        check(seal.open(token) == contents, "a token does not open")
        var forged = token.bytes
        let place = Int(word(3) % 256)
        forged[place / 8] ^= 1 << UInt8(place % 8)
        check(DeviceToken(bytes: forged).flatMap { seal.open($0) } == nil, "a forged token is valid")
    }

    // MARK: - Certificates

    private static let authority: CertificateAuthority = {
        guard let bundle = try? PEMBundle(pem: Array(authorityPEM.utf8), path: "authority"),
            let authority = try? CertificateAuthority(bundle: bundle, path: "authority")
        else { fatalError("the authority of the fuzz targets cannot be read") }
        return authority
    }()

    @Sendable
    private static func revocationList(_ bytes: [UInt8]) {
        guard let list = try? RevocationList(der: bytes, authority: authority) else { return }
        check(list.count <= bytes.count / 5, "a list has more entries than bytes")
        _ = list.revoked(serial: "01")
        check(list.mayFollow(list), "a list does not follow itself")
    }

    private static let peers = PeerCertificateCheck(
        providers: authority,
        devices: authority,
        revocations: RevocationLists(sources: [:], policy: RevocationPolicy(mayBeMissing: true)),
        unmarkedEnvironments: [.production]
    )

    /// Identities in certificates that TLS has verified, and the words about one that it has not.
    @Sendable
    private static func certificate(_ bytes: [UInt8]) {
        if case .success(let provider) = peers.provider(certificate: bytes, at: now) {
            check(!provider.topics.isEmpty, "a provider without a topic")
            check(provider.defaultTopic.map(provider.topics.contains) ?? true, "a foreign topic")
            check(provider.subjectTopic.map(provider.topics.contains) ?? true, "a foreign topic")
        }
        let device = peers.device(certificate: bytes, at: now)
        check(peers.device(certificate: bytes, at: now).map(\.id) == device.map(\.id), "the cache disagrees")
        for kind in PeerKind.allCases {
            check(!peers.fault(of: kind, certificate: bytes, at: now).message.isEmpty, "a refusal without words")
        }
        _ = AppleExtensions.topicList(bytes[...])
        _ = try? CertificatesMessage.decode(bytes)
    }

    @Sendable
    private static func certificateRequest(_ bytes: [UInt8]) {
        try? CertificateRequest.check(bytes)
    }

    /// Files of the trust folder, invitation codes, and names that people type.
    @Sendable
    private static func trustFile(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        _ = try? PEMBundle(pem: bytes, path: "file")
        if let file = try? PEMFile(bytes) {
            _ = (try? file.request(), try? file.revocationList(), try? file.certificateText())
            _ = try? file.verificationKey()
            if let key = try? file.signingKey() {
                let again = try? PEMFile(Array(key.pemRepresentation.utf8)).signingKey()
                check(again?.rawRepresentation == key.rawRepresentation, "a key is not read as it was written")
            }
        }
        if let ring = try? TokenKeyRing(json: bytes) {
            let again = (try? ring.json()).flatMap { try? TokenKeyRing(json: $0) }
            check(again?.keys.map(\.id) == ring.keys.map(\.id), "a key ring is not read as it was written")
        }
        _ = try? ProviderKeyFile.keys(json: bytes)
        _ = try? InvitationCode(text)
        if case .host(let name)? = ServerName(text) {
            check(name.utf8.count <= 253 && name == name.lowercased(), "the host name \(name)")
        }
        if let fault = TLSFault(text: text) { _ = "\(fault)" }
        if let decoded = bytes.withUnsafeBytes({ Base64.decode($0) }) {
            let again = Array(Base64.encode(decoded).utf8).withUnsafeBytes { Base64.decode($0) }
            check(again == decoded, "base 64 is not read as it was written")
        }
    }
}

/// An authority that signed the certificates and lists of the corpora.
private let authorityPEM = """
    -----BEGIN CERTIFICATE-----
    MIIBsTCCAVagAwIBAgIUMhhQjRe8gyjxba1uhZQLW1YRkV4wCgYIKoZIzj0EAwIw
    IzEPMA0GA1UECgwGSGVyYWxkMRAwDgYDVQQDDAdGdXp6aW5nMCAXDTI2MTEyMjIz
    Mjg0M1oYDzIwODEwODI1MjMyODQzWjAjMQ8wDQYDVQQKDAZIZXJhbGQxEDAOBgNV
    BAMMB0Z1enppbmcwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQjXP8stUixTsj0
    BA8i13nqalBsBmkZwRc+5xpDjORVVaLcfavgvuDBMSLnpwtaJTww8Sg7e1Ril3Nq
    wlfYalGqo2YwZDAdBgNVHQ4EFgQUqAhFnWqiL/HN0rOU1FuZL5TeejIwHwYDVR0j
    BBgwFoAUqAhFnWqiL/HN0rOU1FuZL5TeejIwEgYDVR0TAQH/BAgwBgEB/wIBADAO
    BgNVHQ8BAf8EBAMCAQYwCgYIKoZIzj0EAwIDSQAwRgIhAPp4ZoR5nJ00n8fvjeA/
    4mRseTc0c2oT9Lq45nCJd5ITAiEA7eCX2g33A+84GHRMbGSJ1GGyQvY/ghlx3ywP
    vdQss2A=
    -----END CERTIFICATE-----
    """
