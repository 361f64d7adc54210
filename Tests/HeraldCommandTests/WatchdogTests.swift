import HeraldModel
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct WatchdogTests {
    @Test func `a sign of life needs the answers of all parts to the last question`() {
        var rounds = WatchdogRounds(parts: ["loop", "store"])
        #expect(rounds.tick() == .ask(round: 1))
        rounds.answered(0, in: 1)
        #expect(rounds.tick() == .report(["store"]))
        #expect(rounds.tick() == .wait, "it is said once")
        rounds.answered(1, in: 1)
        #expect(rounds.tick() == .ask(round: 2))
    }

    @Test func `a late answer to an earlier question is none to the present one`() {
        var rounds = WatchdogRounds(parts: ["loop"])
        _ = rounds.tick()
        rounds.answered(0, in: 1)
        #expect(rounds.tick() == .ask(round: 2))
        rounds.answered(0, in: 1)
        #expect(rounds.tick() == .report(["loop"]))
    }

    @Test(
        arguments: [
            (["WATCHDOG_USEC": "60000000"], Duration.seconds(60)),
            (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "42"], .seconds(60)),
            (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "43"], nil),
            (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "soon"], nil), ([:], nil),
        ] as [([String: String], Duration?)]
    )
    func `the watchdog counts if it means this process`(environment: [String: String], expected: Duration?) {
        #expect(ServiceManager.watchdog(environment, 42) == expected)
    }

    @Test(arguments: [nil, "", "relative", "/run/herald-test-of-nobody", "@herald-test-of-nobody"] as [String?])
    func `a manager that is not there does no harm`(address: String?) {
        let manager = ServiceManager(environment: address.map { ["NOTIFY_SOCKET": $0] } ?? [:])
        manager.status("serving")
        manager.stopping()
        #expect(manager.isThere == (address?.contains("herald-test") ?? false))
    }
}
