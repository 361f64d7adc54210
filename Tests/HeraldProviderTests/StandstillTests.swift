import NIOCore
import Testing

@testable import HeraldProvider

struct StandstillTests {
    private let due = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    @Test func `a timer that comes in time shows none`() {
        let now = due + .milliseconds(100)
        #expect(Standstill(due: due, now: now, tolerance: .milliseconds(100)) == nil)
    }

    @Test func `an overdue answer gets as long as the process stood still, and at most its time limit`() throws {
        for (slept, granted) in [(TimeAmount.seconds(4), TimeAmount.seconds(4)), (.hours(1), .seconds(30))] {
            let now = due + slept
            let standstill = try #require(Standstill(due: due, now: now, tolerance: .milliseconds(100)))
            #expect(standstill.postponed(due, now: now, limit: .seconds(30)) == now + granted)
            for later in [now + .seconds(1), .distantFuture] {
                #expect(standstill.postponed(later, now: now, limit: .seconds(30)) == later)
            }
        }
    }
}
