import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

struct TokenSealTests {
    let now = ManualClock().now()

    private func contents(_ device: UInt64, _ app: UInt32 = 1, _ generation: UInt32 = 0) -> TokenContents {
        TokenContents(slot: Slot(device: DeviceNumber(device), app: AppNumber(app)), generation: generation)
    }

    @Test(arguments: [UInt64(0), 1, 0x0102_0304_0506_0708, .max])
    func `a token decrypts to its contents`(device: UInt64) {
        let seal = TokenSeal(keys: TokenKeyRing(now: now))
        let sealed = contents(device, 0xA1B2_C3D4, 0xFFFF_FFFE)
        let token = seal.seal(sealed)
        #expect(seal.open(token) == sealed)
        #expect(seal.open(token) == sealed, "a second time, from the table")
    }

    @Test func `a registration always has the same token`() throws {
        let ring = TokenKeyRing(now: now)
        let token = TokenSeal(keys: ring).seal(contents(7))
        #expect(TokenSeal(keys: ring).seal(contents(7)) == token)
        let restored = try TokenKeyRing(json: try ring.json())
        #expect(TokenSeal(keys: restored).seal(contents(7)) == token, "also after a restart")
    }

    @Test func `a different device, app or generation gives another token`() {
        let seal = TokenSeal(keys: TokenKeyRing(now: now))
        let tokens = [contents(1, 1, 0), contents(2, 1, 0), contents(1, 2, 0), contents(1, 1, 1)].map(seal.seal)
        #expect(Set(tokens).count == 4)
    }

    @Test func `a token with any bit changed is invalid`() {
        let seal = TokenSeal(keys: TokenKeyRing(now: now))
        let bytes = seal.seal(contents(42)).bytes
        for bit in 0..<256 {
            var forged = bytes
            forged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(DeviceToken(bytes: forged).flatMap(seal.open) == nil, "bit \(bit)")
        }
    }

    @Test func `a token of another service is invalid`() {
        let token = TokenSeal(keys: TokenKeyRing(now: now)).seal(contents(1))
        #expect(TokenSeal(keys: TokenKeyRing(now: now)).open(token) == nil)
    }

    @Test func `the newest key encrypts, and older ones decrypt until they are retired`() throws {
        var ring = TokenKeyRing(now: now)
        let seal = TokenSeal(keys: ring)
        let old = seal.seal(contents(1))
        try ring.rotate(now: now)
        seal.replaceKeys(ring)
        let new = seal.seal(contents(1))
        #expect(new != old)
        #expect(seal.open(old) == contents(1))
        #expect(seal.open(new) == contents(1))
        try ring.retire(1, now: now)
        seal.replaceKeys(ring)
        #expect(seal.open(old) == nil, "also though it was remembered")
        #expect(seal.open(new) == contents(1))
    }

    @Test func `use is counted for each key, so that a rotation can be finished`() throws {
        var ring = TokenKeyRing(now: now)
        let seal = TokenSeal(keys: ring)
        let old = seal.seal(contents(1))
        _ = (seal.open(old), seal.open(old))
        try ring.rotate(now: now)
        seal.replaceKeys(ring)
        let new = seal.seal(contents(1))
        _ = (seal.open(old), seal.open(new), seal.open(new))
        #expect(seal.usage.map(\.key) == [2, 1])
        #expect(seal.usage.map(\.opened) == [2, 3])
    }

    @Test func `more tokens than the cache has are decrypted too`() {
        let seal = TokenSeal(keys: TokenKeyRing(now: now), cacheCapacity: 64)
        let tokens = (0..<500).map { seal.seal(contents(UInt64($0))) }
        for round in 0..<2 {
            for (index, token) in tokens.enumerated() {
                #expect(seal.open(token) == contents(UInt64(index)), "round \(round)")
            }
        }
    }

    @Test func `the newest key cannot be retired`() {
        var ring = TokenKeyRing(now: now)
        #expect(throws: TrustError(.invalidArgument, "")) { try ring.retire(1, now: now) }
        #expect(throws: TrustError(.unknownID, "")) { try ring.retire(9, now: now) }
    }

    @Test func `a key can be retired only once`() throws {
        var ring = TokenKeyRing(now: now)
        try ring.rotate(now: now)
        try ring.retire(1, now: now)
        #expect(throws: TrustError(.alreadyRevoked, "")) { try ring.retire(1, now: now + .seconds(1)) }
        #expect(ring.keys[0].retired == now)
    }

    @Test func `the number of keys that decrypt is bounded`() throws {
        var ring = TokenKeyRing(now: now)
        for _ in 1..<TokenKeyRing.maximumOpenKeys { try ring.rotate(now: now) }
        #expect(throws: TrustError(.invalidArgument, "")) { try ring.rotate(now: now) }
        try ring.retire(1, now: now)
        try ring.rotate(now: now)
        #expect(ring.openKeys.map(\.id) == [9, 8, 7, 6, 5, 4, 3, 2])
    }

    @Test func `a ring is read from its file, with retired keys and without their secrets`() throws {
        var ring = TokenKeyRing(now: now)
        try ring.rotate(now: now)
        try ring.retire(1, now: now)
        let restored = try TokenKeyRing(json: try ring.json())
        #expect(restored.keys.map(\.id) == [1, 2])
        #expect(restored.keys[0].secret == nil)
        #expect(restored.keys[0].retired == now)
        #expect(restored.keys[1].secret == ring.keys[1].secret)
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"keys":[]}"#,
        #"{"keys":[{"id":1,"created":"2026-03-01T12:00:00Z"}]}"#,
        #"{"keys":[{"id":1,"created":"yesterday","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]}"#,
        #"{"keys":[{"id":1,"created":"2026-03-01T12:00:00Z","secret":"AAAAAAAAAAAAAAAAAAAAAA=="}]}"#,
        #"{"keys":[{"id":0,"created":"2026-03-01T12:00:00Z","secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]}"#,
        #"{"keys":[{"id":1,"created":"2026-03-01T12:00:00Z","retired":"2026-03-01T12:00:00Z"}]}"#,
    ])
    func `a damaged file of keys is refused`(text: String) {
        #expect(throws: TrustError(.damaged, "")) { try TokenKeyRing(json: Array(text.utf8)) }
    }
}
