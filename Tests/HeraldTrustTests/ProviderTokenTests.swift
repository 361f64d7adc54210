import Crypto
import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldTrust

/// A provider token as in Apple's guide, of which a test changes parts.
private struct Draft {
    var header: String
    var claims: String
    var encode: (Data) -> String = { Draft.base64URL($0) }
    var signature: (P256.Signing.ECDSASignature) -> Data = { $0.rawRepresentation }

    init(header: String, claims: String) {
        self.header = header
        self.claims = claims
    }

    func signed(_ key: P256.Signing.PrivateKey) throws -> String {
        let text = encode(Data(header.utf8)) + "." + encode(Data(claims.utf8))
        return text + "." + encode(signature(try key.signature(for: Data(text.utf8))))
    }

    static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

struct ProviderTokenTests {
    static let keyID = "ABC123DEFG"
    static let team = "TEAM000001"
    static let iat = 1_772_366_400

    let now = WallTime(seconds: Int64(ProviderTokenTests.iat))
    let secret = P256.Signing.PrivateKey()

    private func table(
        topics: [String] = [],
        revoked: WallTime? = nil,
        claims: [TopicClaim] = []
    ) -> CredentialTable {
        let key = ProviderKey(
            id: Self.keyID,
            team: Self.team,
            topics: topics.compactMap { Topic($0) },
            environments: [.production],
            publicKey: secret.publicKey,
            created: now,
            revoked: revoked
        )
        return CredentialTable(keys: [key], claims: TopicClaims(version: 1, claims))
    }

    private var draft: Draft {
        Draft(
            header: #"{"alg":"ES256","kid":"\#(Self.keyID)"}"#,
            claims: #"{"iss":"\#(Self.team)","iat":\#(Self.iat)}"#
        )
    }

    private func verdict(_ token: String, at moment: WallTime? = nil) -> ProviderTokenVerdict {
        ProviderTokenVerifier(credentials: table()).verify(Array(token.utf8), now: moment ?? now)
    }

    private func isValid(_ verdict: ProviderTokenVerdict) -> Bool {
        if case .valid = verdict { true } else { false }
    }

    private func refusalReason(_ verdict: ProviderTokenVerdict) -> RefusalReason? {
        switch verdict {
        case .valid: nil
        case .refused(let refusalReason, _): refusalReason
        case .unknownKey: .invalidProviderToken
        }
    }

    @Test func `a signed token has its key, team and time`() throws {
        let token = try ProviderToken.sign(key: secret, keyID: Self.keyID, team: Self.team, issued: now)
        guard case .valid(let identity) = verdict(token) else {
            Issue.record("refused: \(verdict(token))")
            return
        }
        #expect(identity.keyID == Self.keyID)
        #expect(identity.team == Self.team)
        #expect(identity.topics == .wholeTeam)
        #expect(identity.environments == [.production])
        #expect(identity.issued == now)
    }

    @Test(arguments: [
        ("typ", #"{"alg":"ES256","kid":"ABC123DEFG","typ":"JWT"}"#),
        ("no alg, no typ", #"{"kid":"ABC123DEFG"}"#),
        ("members of no concern", #"{"kid":"ABC123DEFG","x":{"a":[1,2.5e3,true,null]},"jku":"https://e.example"}"#),
        ("pretty-printed", "{\n  \"alg\" : \"ES256\",\r\n\t\"kid\" : \"ABC123DEFG\"\n}\n"),
        ("escapes", #"{"\u0061lg":"ES256","kid":"ABC\u0031\u00323DEFG"}"#),
    ])
    func `the headers that clients send are accepted`(name: String, header: String) throws {
        var draft = draft
        draft.header = header
        #expect(isValid(verdict(try draft.signed(secret))), "\(name)")
    }

    @Test(arguments: [
        ("iat as text", #"{"iss":"TEAM000001","iat":"1772366400"}"#),
        ("iat with an exponent", #"{"iss":"TEAM000001","iat":1.7723664e9}"#),
        ("iat with an exponent and a fraction", #"{"iss":"TEAM000001","iat":17723664005E-1}"#),
        ("iat with an exponent as text", #"{"iss":"TEAM000001","iat":"1.7723664E+9"}"#),
        ("iat as text with a fraction", #"{"iss":"TEAM000001","iat":"1772366400.5"}"#),
        ("iat with a fraction of zero", #"{"iss":"TEAM000001","iat":1772366400.0}"#),
        ("iat with a fraction", #"{"iss":"TEAM000001","iat":1772366400.853917}"#),
        ("kid among the claims", #"{"iss":"TEAM000001","iat":1772366400,"kid":"ABC123DEFG"}"#),
        ("pretty-printed", "{\n \"iss\" : \"TEAM000001\",\n \"iat\" : 1772366400\n}"),
        ("members of no concern", #"{"iss":"TEAM000001","iat":1772366400,"exp":1,"aud":["a"],"sub":"ü€😀"}"#),
        ("a pair of surrogates", #"{"iss":"TEAM000001","iat":1772366400,"sub":"\ud83d\ude00"}"#),
    ])
    func `the claims that clients send are accepted`(name: String, claims: String) throws {
        var draft = draft
        draft.claims = claims
        #expect(isValid(verdict(try draft.signed(secret))), "\(name)")
    }

    @Test func `a signature in DER is accepted`() throws {
        var draft = draft
        draft.signature = { $0.derRepresentation }
        for _ in 0..<20 { #expect(isValid(verdict(try draft.signed(secret)))) }
    }

    @Test func `standard base 64 with padding is accepted`() throws {
        var draft = draft
        draft.encode = { $0.base64EncodedString() }
        for _ in 0..<20 { #expect(isValid(verdict(try draft.signed(secret)))) }
    }

    @Test(arguments: [
        ("alg none", #"{"alg":"none","kid":"ABC123DEFG"}"#),
        ("alg HS256", #"{"alg":"HS256","kid":"ABC123DEFG"}"#),
        ("alg ES384", #"{"alg":"ES384","kid":"ABC123DEFG"}"#),
        ("alg RS256", #"{"alg":"RS256","kid":"ABC123DEFG"}"#),
        ("alg in lower case", #"{"alg":"es256","kid":"ABC123DEFG"}"#),
        ("alg empty", #"{"alg":"","kid":"ABC123DEFG"}"#),
        ("alg null", #"{"alg":null,"kid":"ABC123DEFG"}"#),
        ("alg a list", #"{"alg":["ES256"],"kid":"ABC123DEFG"}"#),
        ("alg twice", #"{"alg":"ES256","alg":"ES256","kid":"ABC123DEFG"}"#),
        ("alg twice, once escaped", #"{"alg":"ES256","\u0061lg":"none","kid":"ABC123DEFG"}"#),
        ("no kid", #"{"alg":"ES256"}"#),
        ("kid empty", #"{"alg":"ES256","kid":""}"#),
        ("kid short", #"{"alg":"ES256","kid":"ABC123DEF"}"#),
        ("kid long", #"{"alg":"ES256","kid":"ABC123DEFGH"}"#),
        ("kid in lower case", #"{"alg":"ES256","kid":"abc123defg"}"#),
        ("kid a path", #"{"alg":"ES256","kid":"../../etc/"}"#),
        ("kid a query", #"{"alg":"ES256","kid":"' OR 1=1--"}"#),
        ("kid with a zero byte", #"{"alg":"ES256","kid":"ABC123DE\u0000G"}"#),
        ("kid a number", #"{"alg":"ES256","kid":1234567890}"#),
        ("kid of nobody", #"{"alg":"ES256","kid":"ZZZZZZZZZZ"}"#),
        ("typ a number", #"{"alg":"ES256","kid":"ABC123DEFG","typ":1}"#),
        ("critical extensions", #"{"alg":"ES256","kid":"ABC123DEFG","crit":["exp"]}"#),
        ("a list", #"["ES256","ABC123DEFG"]"#),
        ("a string", #""ES256""#),
        ("nothing", ""),
        ("something after it", #"{"alg":"ES256","kid":"ABC123DEFG"}x"#),
        ("two objects", #"{"alg":"ES256","kid":"ABC123DEFG"}{}"#),
        ("a comma too many", #"{"alg":"ES256","kid":"ABC123DEFG",}"#),
        ("single quotes", #"{'alg':'ES256','kid':'ABC123DEFG'}"#),
        ("a comment", #"{"alg":"ES256"/**/,"kid":"ABC123DEFG"}"#),
        ("a byte order mark", "\u{FEFF}{\"alg\":\"ES256\",\"kid\":\"ABC123DEFG\"}"),
        ("a lone surrogate", #"{"alg":"ES256","kid":"ABC123DEFG","x":"\ud83d"}"#),
        ("a line feed in a string", "{\"alg\":\"ES256\",\"kid\":\"ABC123DEFG\",\"x\":\"\n\"}"),
        ("a number with a leading zero", #"{"alg":"ES256","kid":"ABC123DEFG","x":01}"#),
        ("a member twice further in", #"{"alg":"ES256","kid":"ABC123DEFG","x":{"a":1,"a":2}}"#),
        ("unfinished", #"{"alg":"ES256","kid":"ABC123DEFG""#),
    ])
    func `an invalid header is refused, although it is signed`(name: String, header: String) throws {
        var draft = draft
        draft.header = header
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken, "\(name)")
    }

    @Test(arguments: [
        (#"{"alg":"ES256"}"#, Self.iat, "the token has no kid: its header names the key"),
        (#"{"alg":"ES256","kid":"abc"}"#, Self.iat, "the token's kid is not ten of A-Z and 0-9"),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, Self.iat * 1000, "the token's iat is in milliseconds: write seconds"),
        (
            #"{"alg":"ES256","kid":"ABC123DEFG"}"#, 253_402_300_800,
            "the token's iat is not from 0 to 253402300799, in seconds since 1970"
        ),
        (
            #"{"alg":"ES256","kid":"ABC123DEFG"}"#, Int.max,
            "the token's iat is not from 0 to 253402300799, in seconds since 1970"
        ),
        (#"{"alg":"ES256","kid":"ABC123DEFG"}"#, Self.iat + 999, "the token was issued 999 seconds in the future"),
    ])
    func `a refusal names the mistake`(header: String, iat: Int, words: String) throws {
        let draft = Draft(header: header, claims: #"{"iss":"\#(Self.team)","iat":\#(iat)}"#)
        guard case .refused(.invalidProviderToken, let why) = verdict(try draft.signed(secret)) else {
            Issue.record("the token was not refused")
            return
        }
        #expect(why == words)
    }

    @Test(arguments: [
        ("no iss", #"{"iat":1772366400}"#),
        ("another team", #"{"iss":"TEAM000002","iat":1772366400}"#),
        ("iss in lower case", #"{"iss":"team000001","iat":1772366400}"#),
        ("iss a number", #"{"iss":1000000001,"iat":1772366400}"#),
        ("iss twice", #"{"iss":"TEAM000001","iss":"TEAM000001","iat":1772366400}"#),
        ("no iat", #"{"iss":"TEAM000001"}"#),
        ("iat null", #"{"iss":"TEAM000001","iat":null}"#),
        ("iat twice", #"{"iss":"TEAM000001","iat":1772366400,"iat":1772366400}"#),
        ("iat negative with a fraction", #"{"iss":"TEAM000001","iat":-1772366400.5}"#),
        ("iat beyond all numbers, by its exponent", #"{"iss":"TEAM000001","iat":1e999}"#),
        ("iat beyond 64 bits, by its exponent", #"{"iss":"TEAM000001","iat":1e19}"#),
        ("iat negative, by a fraction", #"{"iss":"TEAM000001","iat":-1e-3}"#),
        ("iat an object", #"{"iss":"TEAM000001","iat":{"s":1772366400}}"#),
        ("iat text with more than a number", #"{"iss":"TEAM000001","iat":"1772366400 1"}"#),
        ("iat negative", #"{"iss":"TEAM000001","iat":-1}"#),
        ("iat beyond all numbers", #"{"iss":"TEAM000001","iat":99999999999999999999999}"#),
        ("iat text with a sign", #"{"iss":"TEAM000001","iat":"+1772366400"}"#),
        ("iat empty text", #"{"iss":"TEAM000001","iat":""}"#),
        ("iat a date", #"{"iss":"TEAM000001","iat":"2026-03-01"}"#),
        ("iat in milliseconds", #"{"iss":"TEAM000001","iat":"1772366400000"}"#),
        ("iat far in the future", #"{"iss":"TEAM000001","iat":9223372036854775807}"#),
        ("not an object", "1772366400"),
    ])
    func `invalid claims are refused, although they are signed`(name: String, claims: String) throws {
        var draft = draft
        draft.claims = claims
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken, "\(name)")
    }

    @Test(arguments: ["", ".", "..", "...", "a.b", "a.b.c.d", "a.b.c", "bearer a.b.c", "\u{0}", "ä.ö.ü", " a.b.c"])
    func `malformed tokens are refused`(text: String) {
        #expect(refusalReason(verdict(text)) == .invalidProviderToken)
    }

    @Test func `a token with any part missing, added or exchanged is refused`() throws {
        let token = try draft.signed(secret)
        let parts = token.split(separator: ".").map(String.init)
        let spoilt = [
            parts[0] + "." + parts[1], parts[0] + "." + parts[1] + ".", "." + parts[1] + "." + parts[2],
            token + ".", token + "=", token + " ", token + "\n", " " + token, token.dropLast() + "",
            token.replacing(".", with: ". "), parts[1] + "." + parts[0] + "." + parts[2],
            parts[0] + "." + parts[1] + "." + parts[2] + parts[2], parts[0] + "=.=" + parts[1] + "." + parts[2],
        ]
        for text in spoilt { #expect(refusalReason(verdict(text)) == .invalidProviderToken, "\(text)") }
    }

    @Test func `changing any character makes the token invalid`() throws {
        let token = Array(try draft.signed(secret).utf8)
        let verifier = ProviderTokenVerifier(credentials: table())
        for index in token.indices {
            var changed = token
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(refusalReason(verifier.verify(changed, now: now)) == .invalidProviderToken, "character \(index)")
        }
    }

    @Test func `a signature of another key or other content is refused`() throws {
        #expect(refusalReason(verdict(try draft.signed(P256.Signing.PrivateKey()))) == .invalidProviderToken)
        var other = draft
        other.claims = #"{"iss":"TEAM000001","iat":1772366401}"#
        let mixed =
            try draft.signed(secret).split(separator: ".").prefix(2)
            + other.signed(secret).split(separator: ".").suffix(1)
        #expect(refusalReason(verdict(mixed.joined(separator: "."))) == .invalidProviderToken)
    }

    @Test(arguments: [
        Data(), Data(count: 1), Data(count: 63), Data(count: 64), Data(count: 65), Data(count: 128), Data(count: 1000),
        Data([0x30, 0x06, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00]), Data([0x30, 0x80, 0x00, 0x00]),
        Data([0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01]),
        Data(repeating: 0xFF, count: 64),
    ])
    func `a malformed signature is refused`(signature: Data) throws {
        var draft = draft
        draft.signature = { _ in signature }
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken)
    }

    @Test func `HMAC with the public key as its secret is refused`() throws {
        let header = Draft.base64URL(Data(#"{"alg":"HS256","kid":"ABC123DEFG"}"#.utf8))
        let text = header + "." + Draft.base64URL(Data(draft.claims.utf8))
        let key = SymmetricKey(data: Data(secret.publicKey.pemRepresentation.utf8))
        let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
        #expect(refusalReason(verdict(text + "." + Draft.base64URL(Data(code)))) == .invalidProviderToken)
    }

    @Test func `a token that is too large or too deep is refused`() throws {
        var draft = draft
        draft.claims = #"{"iss":"TEAM000001","iat":1772366400,"x":"\#(String(repeating: "a", count: 1000))"}"#
        #expect(isValid(verdict(try draft.signed(secret))))
        draft.claims = #"{"iss":"TEAM000001","iat":1772366400,"x":"\#(String(repeating: "a", count: 2000))"}"#
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken)
        func nested(_ depth: Int) -> String {
            let open = String(repeating: "[", count: depth)
            return #"{"iss":"TEAM000001","iat":1772366400,"x":"# + open + String(repeating: "]", count: depth) + "}"
        }
        draft.claims = nested(31)
        #expect(isValid(verdict(try draft.signed(secret))))
        draft.claims = nested(33)
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken)
        draft.claims = nested(600)
        #expect(refusalReason(verdict(try draft.signed(secret))) == .invalidProviderToken)
    }

    @Test func `a token lives an hour, and may be a minute ahead`() throws {
        let token = try draft.signed(secret)
        let verifier = ProviderTokenVerifier(credentials: table())
        func refusalReason(after seconds: Int64) -> RefusalReason? {
            self.refusalReason(verifier.verify(Array(token.utf8), now: now + .seconds(seconds)))
        }
        // In this order, the first is checked and the others are cached.
        #expect(refusalReason(after: 0) == nil)
        #expect(refusalReason(after: 3600) == nil)
        #expect(refusalReason(after: 3601) == .expiredProviderToken)
        #expect(refusalReason(after: -60) == nil)
        #expect(refusalReason(after: -61) == .invalidProviderToken)
        #expect(refusalReason(after: 100_000_000) == .expiredProviderToken)
        #expect(refusalReason(after: 0) == nil)
    }

    @Test func `a forged token is invalid before it is expired`() throws {
        let token = try draft.signed(P256.Signing.PrivateKey())
        #expect(refusalReason(verdict(token, at: now + .seconds(7200))) == .invalidProviderToken)
    }

    @Test func `a revoked key verifies no token, not even a cached one`() throws {
        let token = Array(try draft.signed(secret).utf8)
        let verifier = ProviderTokenVerifier(credentials: table())
        #expect(isValid(verifier.verify(token, now: now)))
        let generation = verifier.generation
        verifier.replaceCredentials(table(revoked: now))
        #expect(refusalReason(verifier.verify(token, now: now)) == .invalidProviderToken)
        #expect(verifier.generation > generation)
        verifier.replaceCredentials(CredentialTable(keys: [], claims: TopicClaims(version: .min, [])))
        #expect(refusalReason(verifier.verify(token, now: now)) == .invalidProviderToken)
    }

    @Test func `a key for topics may send to them in all their forms, and to no other`() throws {
        let verifier = ProviderTokenVerifier(
            credentials: table(topics: ["com.example.chat", "com.example.calls.voip"])
        )
        guard case .valid(let identity) = verifier.verify(Array(try draft.signed(secret).utf8), now: now) else {
            Issue.record("refused")
            return
        }
        let allowed = [
            "com.example.chat", "com.example.chat.voip", "com.example.chat.push-type.liveactivity",
            "com.example.calls.voip",
        ]
        let others = [
            "com.example.calls", "com.example", "com.example.chat2", "com.example.chat.other", "com.Example.chat",
        ]
        for name in allowed { #expect(verifier.mayPush(try #require(Topic(name)), as: identity), "\(name)") }
        for name in others { #expect(!verifier.mayPush(try #require(Topic(name)), as: identity), "\(name)") }
    }

    private func claim(_ name: String, team: String = Self.team) throws -> TopicClaim {
        TopicClaim(try #require(Topic(name)), team: team, origin: .use, since: now)
    }

    private func verified(by verifier: ProviderTokenVerifier) throws -> ProviderTokenIdentity {
        let verdict = verifier.verify(Array(try draft.signed(secret).utf8), now: now)
        guard case .valid(let identity) = verdict else { throw TrustError(.unexpected, "\(verdict)") }
        return identity
    }

    @Test func `a key of the whole team may send to every topic that no other team owns`() throws {
        let claims = [try claim("com.example.chat"), try claim("com.other.chat.voip", team: "TEAM000002")]
        let verifier = ProviderTokenVerifier(credentials: table(claims: claims))
        let identity = try verified(by: verifier)
        func permission(_ name: String) throws -> TopicPermission {
            verifier.permission(for: try #require(Topic(name)), team: identity.team, scope: identity.topics)
        }
        for name in ["com.example.chat", "com.example.chat.voip"] {
            #expect(try permission(name) == .allowed, "\(name)")
        }
        for name in ["com.other.chat", "com.other.chat.voip", "com.other.chat.push-type.widgets"] {
            #expect(try permission(name) == .refused, "\(name)")
        }
        let use = TopicUse(topic: try #require(Topic("com.nobody.app")), team: Self.team, isNamed: false)
        for name in ["com.nobody.app", "com.nobody.app.location-query"] {
            #expect(try permission(name) == .firstUse(use), "\(name)")
        }
    }

    @Test func `a credential that names a topic may send to it, whichever team owns it`() throws {
        let chat = try #require(Topic("com.example.chat"))
        func permission(_ owner: String?) throws -> TopicPermission {
            let claims = try owner.map { [try claim("com.example.chat", team: $0)] } ?? []
            let verifier = ProviderTokenVerifier(credentials: table(topics: ["com.example.chat"], claims: claims))
            return verifier.permission(for: chat, team: Self.team, scope: try verified(by: verifier).topics)
        }
        #expect(try permission(Self.team) == .allowed && permission("TEAM000002") == .allowed)
        #expect(try permission(nil) == .firstUse(TopicUse(topic: chat, team: Self.team, isNamed: true)))
    }

    @Test func `a certificate without a team claims nothing`() throws {
        let chat = try #require(Topic("com.example.chat"))
        let verifier = ProviderTokenVerifier(credentials: table())
        #expect(verifier.permission(for: chat, team: nil, scope: .topics([chat])) == .allowed)
    }

    @Test func `more tokens than the cache has are verified too`() throws {
        let verifier = ProviderTokenVerifier(credentials: table())
        for seconds in 0..<200 {
            let token = try ProviderToken.sign(
                key: secret,
                keyID: Self.keyID,
                team: Self.team,
                issued: now - .seconds(seconds)
            )
            #expect(isValid(verifier.verify(Array(token.utf8), now: now)))
        }
    }
}
