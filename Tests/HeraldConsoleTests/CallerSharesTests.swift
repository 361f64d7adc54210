import HeraldWeb
import Testing

@testable import HeraldConsole

struct CallerSharesTests {
    private func caller(_ name: String, _ role: ConsoleRole = .viewer) -> ConsoleCaller {
        ConsoleCaller(name: name, role: role, proof: .session)
    }

    private func status(_ shares: CallerShares, _ caller: ConsoleCaller) -> Int? {
        do {
            _ = try shares.take(caller)
            return nil
        } catch {
            return (error as? WebRefusal)?.status
        }
    }

    @Test func `one caller has a part of the places, and all but admins leave the last quarter`() {
        let shares = CallerShares(limit: 32, share: 4, what: "pages watch this service")
        #expect((0..<9).map { _ in status(shares, caller("eve")) } == [nil, nil, nil, nil, nil, nil, nil, nil, 429])
        for name in ["ada", "bob"] { for _ in 0..<8 { #expect(status(shares, caller(name)) == nil) } }
        #expect(status(shares, caller("late")) == 503)
        #expect(status(shares, caller("grace", .admin)) == nil)
    }

    @Test func `a place that is given back is free`() throws {
        let shares = CallerShares(limit: 8, share: 4, what: "requests wait for messages")
        let leave = try shares.take(caller("eve"))
        #expect(status(shares, caller("eve")) == nil)
        #expect(status(shares, caller("eve")) == 429)
        leave()
        #expect(status(shares, caller("eve")) == nil)
    }
}
