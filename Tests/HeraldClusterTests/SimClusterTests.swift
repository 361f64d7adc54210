import Foundation
import Testing

/// Random histories of a whole cluster: real post offices and mailboxes on a log that lags, delays, loses and refuses.
///
/// `HERALD_SIM_ROUNDS=FIRST:COUNT` plays other histories; a number repeats its history.
@Suite struct SimClusterTests {
    /// The histories of `make test`, or those that the environment names.
    private static let rounds: Range<UInt64> = {
        let words = ProcessInfo.processInfo.environment["HERALD_SIM_ROUNDS"]?.split(separator: ":").compactMap {
            UInt64($0)
        }
        guard let words, words.count == 2 else { return 1..<501 }
        return words[0]..<words[0] + words[1]
    }()
    /// The histories in which a mistake must be found; two of the mistakes are too rare for that.
    private static let histories: UInt64 = 1000

    private static let steps = 200

    @Test func `no history loses, displaces, refuses wrongly or answers twice`() throws {
        for seed in Self.rounds {
            let violations = try SimCluster(seed: seed).play(steps: Self.steps)
            #expect(violations.isEmpty, "seed \(seed): \(violations.prefix(3))")
            if !violations.isEmpty {
                let again = try SimCluster(seed: seed, isTraced: true)
                _ = try again.play(steps: Self.steps)
                print(again.history)
                break
            }
        }
    }

    @Test(arguments: Mutation.allCases.filter { $0 != .ringsUpToTheClaim && $0 != .boundIsTheClaim })
    func `the check finds each mistake`(mutation: Mutation) throws {
        for seed in 1...Self.histories {
            let violations = try SimCluster(seed: seed, mutation: mutation).play(steps: Self.steps)
            if let first = violations.first { return print("\(mutation.rawValue): history \(seed): \(first)") }
        }
        Issue.record("nobody noticed \(mutation.rawValue)")
    }
}
