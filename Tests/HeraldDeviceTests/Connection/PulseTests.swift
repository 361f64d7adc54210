import Testing

@testable import HeraldDevice

@Suite struct PulseTests {
    private let start = ContinuousClock.now
    private var pulse: Pulse

    init() {
        pulse = Pulse(keepAlive: .seconds(100), answerTimeout: .seconds(20), now: start)
    }

    /// Looks whenever a look is due, until the time has come; what was said, with the second at which it was.
    private mutating func look(until time: Duration) -> [String] {
        var verdicts: [String] = []
        while pulse.nextLook <= start + time {
            let now = pulse.nextLook
            let verdict = pulse.look(at: now)
            if verdict != .fine { verdicts.append("\((now - start).components.seconds) \(verdict)") }
            if case .dead = verdict { break }
        }
        return verdicts
    }

    @Test mutating func `a connection is tested before its keep alive is over, and given up if nothing answers`() {
        #expect(look(until: .seconds(200)) == ["75 ping", #"95 dead("the service fell silent")"#])
    }

    @Test mutating func `one that answers is tested again and again`() {
        #expect(look(until: .seconds(80)) == ["75 ping"])
        pulse.heard()
        #expect(look(until: .seconds(160)) == ["150 ping"])
    }

    @Test mutating func `without a keep alive it is tested after sleep only`() {
        pulse = Pulse(keepAlive: .zero, answerTimeout: .seconds(20), now: start)
        #expect(look(until: .seconds(3600)).isEmpty)
        #expect(pulse.look(at: start + .seconds(3700)) == .ping)
    }

    @Test mutating func `a machine that slept tests its connection at once`() {
        #expect(look(until: .seconds(30)).isEmpty)
        #expect(pulse.look(at: start + .seconds(50)) == .ping)
        #expect(look(until: .seconds(100)) == [#"70 dead("the service fell silent")"#])
    }

    @Test mutating func `an answer that came in the sleep is waited for anew`() {
        #expect(look(until: .seconds(76)) == ["75 ping"])
        #expect(pulse.look(at: start + .seconds(600)) == .ping)
        #expect(pulse.look(at: start + .seconds(605)) == .fine)
        pulse.heard()
        #expect(look(until: .seconds(640)).isEmpty)
    }

    @Test mutating func `a suspect connection is tested now, but not twice at once`() {
        #expect(pulse.look(at: start + .seconds(1), isSuspect: true) == .ping)
        #expect(pulse.look(at: start + .seconds(2), isSuspect: true) == .fine)
        #expect(look(until: .seconds(30)) == [#"21 dead("the service fell silent")"#])
    }

    @Test mutating func `what nobody reads cannot be missed`() {
        #expect(look(until: .seconds(76)) == ["75 ping"])
        pulse.setBusy(true, at: start + .seconds(76))
        #expect(look(until: .seconds(300)).isEmpty)
        pulse.setBusy(false, at: start + .seconds(300))
        #expect(look(until: .seconds(319)).isEmpty)
        #expect(look(until: .seconds(330)) == [#"320 dead("the service fell silent")"#])
    }

    @Test mutating func `a short keep alive shortens the patience too`() {
        pulse = Pulse(keepAlive: .seconds(4), answerTimeout: .seconds(20), now: start)
        #expect(look(until: .seconds(60)) == ["3 ping", #"6 dead("the service fell silent")"#])
    }
}
