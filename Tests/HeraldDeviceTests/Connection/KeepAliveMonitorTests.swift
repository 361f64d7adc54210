import Testing

@testable import HeraldDevice

@Suite struct KeepAliveMonitorTests {
    private let start = ContinuousClock.now
    private var monitor: KeepAliveMonitor

    init() {
        monitor = KeepAliveMonitor(keepAlive: .seconds(100), answerTimeout: .seconds(20), now: start)
    }

    /// Looks whenever a look is due; returns the verdicts with their seconds.
    private mutating func look(until time: Duration) -> [String] {
        var verdicts: [String] = []
        while monitor.nextLook <= start + time {
            let now = monitor.nextLook
            let verdict = monitor.look(at: now)
            if verdict != .fine { verdicts.append("\((now - start).components.seconds) \(verdict)") }
            if case .dead = verdict { break }
        }
        return verdicts
    }

    @Test mutating func `a connection is tested within its keep-alive interval, and closed without an answer`() {
        #expect(look(until: .seconds(200)) == ["75 ping", #"95 dead("the service fell silent")"#])
    }

    @Test mutating func `an answering connection is tested again and again`() {
        #expect(look(until: .seconds(80)) == ["75 ping"])
        monitor.heard()
        #expect(look(until: .seconds(160)) == ["150 ping"])
    }

    @Test mutating func `without a keep-alive interval it is tested only after sleep`() {
        monitor = KeepAliveMonitor(keepAlive: .zero, answerTimeout: .seconds(20), now: start)
        #expect(look(until: .seconds(3600)).isEmpty)
        #expect(monitor.look(at: start + .seconds(3700)) == .ping)
    }

    @Test mutating func `a machine that slept tests its connection at once`() {
        #expect(look(until: .seconds(30)).isEmpty)
        #expect(monitor.look(at: start + .seconds(50)) == .ping)
        #expect(look(until: .seconds(100)) == [#"70 dead("the service fell silent")"#])
    }

    @Test mutating func `an answer that arrived during sleep is requested again`() {
        #expect(look(until: .seconds(76)) == ["75 ping"])
        #expect(monitor.look(at: start + .seconds(600)) == .ping)
        #expect(monitor.look(at: start + .seconds(605)) == .fine)
        monitor.heard()
        #expect(look(until: .seconds(640)).isEmpty)
    }

    @Test mutating func `a suspect connection is tested at once, but not twice`() {
        #expect(monitor.look(at: start + .seconds(1), isSuspect: true) == .ping)
        #expect(monitor.look(at: start + .seconds(2), isSuspect: true) == .fine)
        #expect(look(until: .seconds(30)) == [#"21 dead("the service fell silent")"#])
    }

    @Test mutating func `no answer is expected while nothing is read`() {
        #expect(look(until: .seconds(76)) == ["75 ping"])
        monitor.setBusy(true, at: start + .seconds(76))
        #expect(look(until: .seconds(300)).isEmpty)
        monitor.setBusy(false, at: start + .seconds(300))
        #expect(look(until: .seconds(319)).isEmpty)
        #expect(look(until: .seconds(330)) == [#"320 dead("the service fell silent")"#])
    }

    @Test mutating func `a short keep-alive interval shortens the answer timeout`() {
        monitor = KeepAliveMonitor(keepAlive: .seconds(4), answerTimeout: .seconds(20), now: start)
        #expect(look(until: .seconds(60)) == ["3 ping", #"6 dead("the service fell silent")"#])
    }
}
