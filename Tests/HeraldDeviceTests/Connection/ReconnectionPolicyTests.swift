import Testing

@testable import HeraldDevice

@Suite struct ReconnectionPolicyTests {
    private let start = ContinuousClock.now

    @Test func `pauses double up to the longest, and vary by half`() {
        var backOff = BackOff(shortest: .seconds(1), longest: .seconds(5))
        #expect((0..<5).map { _ in backOff.pause(random: 1) } == [1, 2, 4, 5, 5].map { .seconds($0) })
        #expect(backOff.pause(random: 0) == .milliseconds(2500))
        backOff.reset()
        #expect(backOff.pause(random: 0.5) == .milliseconds(750))
        backOff.yield()
        #expect(backOff.pause(random: 1) == .seconds(5))
    }

    @Test func `a connection that is cut at once is not a success`() {
        var reconnection = ReconnectionPolicy(ReconnectionLimits(), now: start)
        let pauses = (0..<4).map { _ in
            reconnection.pause(after: .retry, lived: .seconds(29), at: start, random: 1)
        }
        #expect(pauses == [1, 2, 4, 8].map { .seconds($0) })
        #expect(reconnection.pause(after: .retry, lived: .seconds(30), at: start, random: 1) == .seconds(1))
    }

    @Test func `the longest pause follows when the service demands it`() {
        var reconnection = ReconnectionPolicy(ReconnectionLimits(), now: start)
        #expect(reconnection.pause(after: .retryLater, lived: .seconds(3600), at: start, random: 1) == .seconds(120))
    }

    @Test func `a connection that was taken over once comes back soon`() {
        var reconnection = ReconnectionPolicy(ReconnectionLimits(), now: start)
        #expect(reconnection.pause(after: .takenOver, lived: .seconds(3), at: start, random: 1) == .seconds(1))
        // A day later.
        #expect(reconnection.pause(after: .takenOver, lived: .seconds(86_400), at: start, random: 1) == .seconds(1))
    }

    @Test func `two clients with one certificate take over from each other less and less often`() {
        var clones = Array(repeating: ReconnectionPolicy(ReconnectionLimits(), now: start), count: 2)
        var pause = Duration.seconds(1)
        var pauses: [Duration] = []
        for round in 0..<20 {
            // Each connection lasts until the other client comes back.
            pause = clones[round % 2].pause(after: .takenOver, lived: pause, at: start, random: 1)
            pauses.append(pause)
        }
        let growing = [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64]
        #expect(pauses == (growing + Array(repeating: 120, count: 6)).map { .seconds($0) })
    }

    @Test func `a device that cannot connect tries less than once a minute`() {
        #expect(attempts(in: .seconds(3600), after: .retry, lived: nil) { _, pause, _ in pause } < 60)
    }

    @Test func `a device whose network flaps keeps to its budget`() {
        // Each pause is skipped after a moment, and each connection lived long enough.
        let count = attempts(in: .seconds(3600), after: .retry, lived: .seconds(60)) { reconnection, _, now in
            reconnection.hurriedPause(at: now, random: 0)
        }
        #expect((140...151).contains(count))
    }

    /// How often a device connects, if every attempt fails at once.
    private func attempts(
        in time: Duration,
        after advice: DeviceSession.End.Advice,
        lived: Duration?,
        pause: (inout ReconnectionPolicy, Duration, ContinuousClock.Instant) -> Duration
    ) -> Int {
        var reconnection = ReconnectionPolicy(ReconnectionLimits(), now: start)
        var now = start
        var count = 0
        while now < start + time {
            reconnection.attempt(at: now)
            count += 1
            let planned = reconnection.pause(after: advice, lived: lived, at: now, random: 0.5)
            now += pause(&reconnection, planned, now)
        }
        return count
    }

    @Test func `an unused budget is regained, up to the burst`() {
        var budget = AttemptBudget(perHour: 60, burst: 2, now: start)
        let later = start + .seconds(7200)
        for now in [start, later] {
            budget.take(at: now)
            #expect(budget.wait(at: now) == .zero)
            budget.take(at: now)
            #expect(budget.wait(at: now) == .seconds(60))
            #expect(budget.wait(at: now + .seconds(59)) == .seconds(1))
            #expect(budget.wait(at: now + .seconds(60)) == .zero)
        }
    }
}
