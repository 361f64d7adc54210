import Foundation
import Testing

/// Random histories of a whole cluster: real post offices and mailboxes on a log that lags, delays, loses and refuses.
///
/// `HERALD_SIM_HISTORIES` and `HERALD_SIM_SEED` play other histories; a failing seed repeats its history.
@Suite struct SimClusterTests {
    private static func number(_ name: String, _ standard: UInt64) -> UInt64 {
        ProcessInfo.processInfo.environment[name].flatMap(UInt64.init) ?? standard
    }

    private static let steps = 200

    @Test func `no history loses, displaces, refuses wrongly or answers twice`() throws {
        let first = Self.number("HERALD_SIM_SEED", 1)
        for seed in first..<first + Self.number("HERALD_SIM_HISTORIES", 1000) {
            let cluster = try SimCluster(seed: seed)
            let violations = try cluster.play(steps: Self.steps)
            #expect(violations.isEmpty, "seed \(seed): \(violations.prefix(3))")
            if !violations.isEmpty {
                print(cluster.history)
                break
            }
        }
    }

    @Test(arguments: Mutation.allCases)
    func `the check finds each mistake`(mutation: Mutation) throws {
        for seed in 1...Self.number("HERALD_SIM_MUTANTS", 1000) {
            if try !SimCluster(seed: seed, mutation: mutation).play(steps: Self.steps).isEmpty { return }
        }
        Issue.record("nobody noticed \(mutation.rawValue)")
    }
}
