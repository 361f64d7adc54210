import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldConsole

struct AuditThrottleTests {
    private let clock = ManualClock()

    private func entry(
        _ who: String?,
        _ role: ConsoleRole? = nil,
        from: String = "192.0.2.1",
        action: String = "POST /v1/drills",
        target: String? = nil,
        status: Int
    ) -> AuditEntry {
        AuditEntry(
            time: clock.now().rfc3339,
            who: who,
            role: role,
            from: from,
            proof: who == nil ? nil : .token,
            action: action,
            target: target,
            status: status,
            error: status < 400 ? nil : "no"
        )
    }

    @Test func `a viewer's flood of refusals is six lines, with their number`() {
        var throttle = AuditThrottle()
        var lines: [AuditEntry] = []
        for _ in 0..<344_300 {
            if let line = throttle.line(entry("eve", .viewer, status: 403), at: clock.now()) { lines.append(line) }
        }
        lines += throttle.rest()
        #expect(lines.count == 6 && lines.last?.more == 344_300 - 6)
        #expect(!throttle.hasMissed)
    }

    @Test func `another caller, action or status of a flood has its own lines`() {
        var throttle = AuditThrottle()
        for _ in 0..<100 { _ = throttle.line(entry("eve", .viewer, status: 403), at: clock.now()) }
        let others = [
            entry("ada", .viewer, status: 403), entry("eve", .viewer, action: "POST /v1/send", status: 403),
            entry("eve", .viewer, status: 400), entry(nil, action: "POST /v1/session", status: 401),
        ]
        for other in others {
            let line = throttle.line(other, at: clock.now())
            #expect(line == other)
        }
    }

    @Test func `the next line that is due says how many were not written`() {
        var throttle = AuditThrottle()
        for _ in 0..<25 { _ = throttle.line(entry("eve", .viewer, status: 403), at: clock.now()) }
        clock.advance(by: AuditThrottle.interval)
        let line = throttle.line(entry("eve", .viewer, status: 403), at: clock.now())
        #expect(line?.more == 20 && !throttle.hasMissed)
    }

    @Test func `strangers from many networks are some lines in all`() {
        var throttle = AuditThrottle()
        var lines = 0
        for number in 0..<22_490 {
            let from = number % 2 == 0 ? "10.\(number / 256 % 256).\(number % 256).1" : "2001:db8:\(number % 9999)::1"
            let line = throttle.line(entry(nil, from: from, action: "POST /v1/session", status: 401), at: clock.now())
            if line != nil { lines += 1 }
        }
        let rest = throttle.rest()
        #expect(lines == 60 && rest.count == 1 && rest.first?.more == 22_490 - 60 - 1)
    }

    @Test func `every change of an admin has a line, and a sender's flood of changes does not wash it away`() {
        var throttle = AuditThrottle()
        var (admins, senders) = (0, 0)
        for number in 0..<10_000 {
            let target = "\(number)"
            let byAdmin = entry("ada", .admin, action: "DELETE /v1/channels/{id}", target: target, status: 200)
            let bySender = entry("eve", .sender, action: "POST /v1/channels", target: target, status: 201)
            if throttle.line(byAdmin, at: clock.now()) != nil { admins += 1 }
            if throttle.line(bySender, at: clock.now()) != nil { senders += 1 }
        }
        #expect(admins == 10_000 && senders == 600)
        let rest = throttle.rest()
        #expect(rest.map(\.more) == [9399])
    }

    @Test func `a flood of sign-ins hides nobody else's`() {
        var throttle = AuditThrottle()
        for _ in 0..<5000 {
            _ = throttle.line(
                entry(nil, action: "POST /v1/session", target: "viewer eve", status: 201),
                at: clock.now()
            )
        }
        let ada = entry(nil, action: "POST /v1/session", target: "admin ada", status: 201)
        let line = throttle.line(ada, at: clock.now())
        #expect(line == ada)
    }
}
