import Testing

@testable import HeraldModel

@Suite struct RateLimitTests {
    private let limit = RateLimit(burst: 3, interval: .seconds(1))

    @Test func `after the burst each use waits for its interval`() {
        var kept = Int64.min
        for _ in 0..<3 {
            #expect(limit.wait(kept, at: 0) == 0)
            kept = limit.used(kept, at: 0)
        }
        #expect(limit.wait(kept, at: 0) == 1_000_000)
        #expect(limit.wait(kept, at: 1_000_000) == 0)
        #expect(limit.wholeBurst(kept, at: 0) == 3_000_000)
    }

    @Test func `uses past the limit neither lengthen the wait nor lift the limit`() {
        var kept = Int64.min
        for _ in 0..<100 { kept = limit.used(kept, at: 0) }
        #expect(limit.wait(kept, at: 0) == 1_000_000)
    }

    @Test func `a clock that was set back forgives`() {
        let kept = limit.used(.min, at: 3_600_000_000)
        #expect(limit.wait(kept, at: 0) == 0)
        #expect(limit.wholeBurst(kept, at: 0) == 0)
    }

    @Test func `extreme values do not overflow`() {
        for limit in [RateLimit(burst: .max, interval: .seconds(Int64.max)), RateLimit(burst: .min, interval: .zero)] {
            #expect(limit.wait(limit.used(.min, at: 0), at: 0) == 0)
        }
    }
}
