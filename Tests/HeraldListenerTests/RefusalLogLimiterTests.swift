import HeraldIdentity
import NIOCore
import Testing

@testable import HeraldListener

struct RefusalLogLimiterTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    @Test func `logs the first refusal, then one a minute with the number of suppressed ones`() {
        var limiter = RefusalLogLimiter<HandshakeRefusalReason>()
        var told: [Int?] = []
        for second in [0, 1, 30, 59, 60, 61, 119, 120, 500] as [Int64] {
            told.append(limiter.take(.expired, now: start + .seconds(second)))
        }
        #expect(told == [0, nil, nil, nil, 3, nil, nil, 2, 0])
    }

    @Test func `a flood of one reason hides no other reason`() {
        var limiter = RefusalLogLimiter<HandshakeRefusalReason>()
        for _ in 0..<1000 { _ = limiter.take(.notTLS, now: start) }
        let revoked = limiter.take(.revoked, now: start)
        let flood = limiter.take(.notTLS, now: start + .seconds(60))
        #expect(revoked == 0)
        #expect(flood == 999)
    }

    @Test func `only ordinary refusals are not logged`() {
        #expect(HandshakeRefusalReason.allCases.filter(\.isOrdinary) == [.ended, .timeout])
        #expect(HandshakeRefusalReason(TLSFault.untrusted) == .otherAuthority)
        #expect(HandshakeRefusalReason(nil) == .ended)
    }
}
