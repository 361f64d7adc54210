import HeraldTrust
import NIOCore
import Testing

@testable import HeraldDoor

struct RefusalPaceTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    @Test func `the first is told, and then one in a minute with the number of those that were not`() {
        var pace = RefusalPace()
        var told: [Int?] = []
        for second in [0, 1, 30, 59, 60, 61, 119, 120, 500] as [Int64] {
            told.append(pace.take(.expired, now: start + .seconds(second)))
        }
        #expect(told == [0, nil, nil, nil, 3, nil, nil, 2, 0])
    }

    @Test func `a flood of one reason hides no other`() {
        var pace = RefusalPace()
        for _ in 0..<1000 { _ = pace.take(.notTLS, now: start) }
        let revoked = pace.take(.revoked, now: start)
        let flood = pace.take(.notTLS, now: start + .seconds(60))
        #expect(revoked == 0)
        #expect(flood == 999)
    }

    @Test func `only what happens all day is not told`() {
        #expect(RefusalReason.allCases.filter(\.isOrdinary) == [.ended, .timeout])
        #expect(RefusalReason(TLSFault.untrusted) == .otherAuthority)
        #expect(RefusalReason(nil) == .ended)
    }
}
