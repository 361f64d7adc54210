import NIOCore
import Testing

@testable import HeraldCluster

/// The decision to leave a NATS server that takes no writes.
@Suite struct WriteSilenceTests {
    private var silence = WriteSilence()
    private var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private let others: [LogStream] = [.apps, .channels, .trust]

    private mutating func fails(_ streams: [LogStream], after seconds: Int64) -> Bool {
        now = now + .seconds(seconds)
        var leaves = false
        for stream in streams where silence.unanswered(in: stream, sent: now - .seconds(2), at: now) { leaves = true }
        return leaves
    }

    private mutating func takes(_ streams: [LogStream]) -> Bool {
        var hasSettled = false
        for stream in streams where silence.stored(in: stream, at: now) { hasSettled = true }
        return hasSettled
    }

    @Test mutating func `one lost answer moves nobody`() {
        #expect(!fails([.meta], after: 0))
        #expect(!takes([.meta]) && silence.isOver)
        #expect(!fails([.meta], after: 60))
    }

    @Test mutating func `a write that was sent before the last one that was taken says nothing`() {
        #expect(!fails([.meta], after: 0))
        now = now + .seconds(60)
        #expect(!takes([.meta]) && silence.isOver)
        #expect(!fails([.meta], after: 1) && silence.isOver)
        #expect(!fails([.meta], after: 2) && !silence.isOver)
    }

    @Test mutating func `a server at which no stream takes writes is left after the third attempt, the next one after the first`() {
        #expect(!fails([.meta] + others, after: 0))
        #expect(!fails([.meta], after: 2))
        #expect(fails([.meta], after: 2))
        #expect(fails([.meta], after: 2))
        #expect(takes([.meta] + others) && silence.isOver)
    }

    @Test mutating func `one at which some streams take writes is left after the time of an election`() {
        #expect(!fails([.meta], after: 0))
        _ = takes(others)
        for _ in 1...4 {
            #expect(!fails([.meta], after: 2))
            _ = takes(others)
        }
        #expect(fails([.meta], after: 2))
        // The others say nothing of the stream for which it was left.
        #expect(!takes(others) && !silence.isOver)
        #expect(takes([.meta]) && silence.isOver)
    }

    @Test mutating func `while no server takes writes, the pauses grow to a minute`() {
        var pauses: [Int64] = []
        for _ in 1...8 {
            var pause: Int64 = 2
            while !fails([.meta], after: 2) { pause += 2 }
            pauses.append(pause)
        }
        #expect(pauses == [6, 2, 2, 10, 18, 34, 62, 62])
    }
}
