import Testing

/// Payloads made of the keys that devices know, with values that nobody has in mind.
@Suite struct GeneratedPayloadTests {
    @Test func `no generated payload breaks a device`() throws {
        let target = try #require(FuzzTarget.named("device"))
        var maker = PayloadMaker(seed: 29)
        for _ in 0..<1_500 {
            let bytes = [UInt8.random(in: 0...63, using: &maker)] + maker.payload()
            guard bytes.count <= target.maximumBytes else { continue }
            target.body(bytes)
        }
    }
}

/// Makes payloads, always the same ones for a seed (SplitMix64).
private struct PayloadMaker: RandomNumberGenerator {
    private static let keys = [
        "alert", "badge", "sound", "content-available", "mutable-content", "category", "thread-id", "event",
        "timestamp",
        "stale-date", "dismissal-date", "content-state", "attributes-type", "attributes", "relevance-score",
        "interruption-level",
    ]
    private static let innerKeys = [
        "title", "subtitle", "body", "loc-key", "loc-args", "title-loc-key", "title-loc-args", "action-loc-key",
        "launch-image", "critical", "name", "volume", "sound", "é", "e\u{301}", "",
    ]
    private static let scalars = [
        "1e400", "-1e400", "1e-400", "1e300", "9007199254740993", "18446744073709551615", "-9223372036854775809",
        "1.10",
        "1e99999999999999999999", "-0", "0", "1", "1.0", "10e-1", "1800000010", "1800000000000", "-62135596801", "0.5",
        "null", "true", "false", "\"\"", "\"start\"", "\"update\"", "\"end\"", "\"default\"", "\"\\ud83d\"",
        "\"\\u0000\"", "\"%@ %1$@ %d\"", "\"\u{202E}\u{200D}\"", "\"time-sensitive\"", "{}", "[]",
    ]

    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func payload() -> [UInt8] {
        let aps = object(Self.keys, upTo: 8, depth: 0)
        return Array("{\"aps\":\(aps),\"own\":\(value(depth: 0))}".utf8)
    }

    private mutating func object(_ keys: [String], upTo count: Int, depth: Int) -> String {
        let members = (0..<Int.random(in: 0...count, using: &self)).map { _ in
            "\"\(keys.randomElement(using: &self) ?? "")\":\(value(depth: depth))"
        }
        return "{\(members.joined(separator: ","))}"
    }

    private mutating func value(depth: Int) -> String {
        switch depth < 4 ? Int.random(in: 0...5, using: &self) : 0 {
        case 4: return object(Self.innerKeys, upTo: 5, depth: depth + 1)
        case 5:
            let elements = (0..<Int.random(in: 0...4, using: &self)).map { _ in value(depth: depth + 1) }
            return "[\(elements.joined(separator: ","))]"
        default: return Self.scalars.randomElement(using: &self) ?? "0"
        }
    }
}
