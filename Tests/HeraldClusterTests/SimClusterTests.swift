import Foundation
import Synchronization
import Testing

/// Random histories of a whole cluster: real post offices and mailboxes on a log that lags, delays, loses and refuses.
///
/// `HERALD_SIM_ROUNDS=FIRST:COUNT` plays other histories; a number repeats its history.
@Suite struct SimClusterTests {
    private struct Finding: Sendable {
        let seed: UInt64
        let violations: [String]
    }

    /// Hands out the numbers of histories.
    private final class Seeds: Sendable {
        private let rest: Mutex<Range<UInt64>>

        init(_ seeds: Range<UInt64>) { rest = Mutex(seeds) }

        func next() -> UInt64? { rest.withLock { $0.popFirst() } }

        /// Hands out no more.
        func stop() { rest.withLock { $0 = 0..<0 } }
    }

    /// The histories of `make test`, or those that the environment names.
    private static let rounds: Range<UInt64> = {
        let words = ProcessInfo.processInfo.environment["HERALD_SIM_ROUNDS"]?.split(separator: ":").compactMap {
            UInt64($0)
        }
        guard let words, words.count == 2 else { return histories }
        return words[0]..<words[0] + words[1]
    }()
    private static let histories: Range<UInt64> = 1..<2_001
    private static let steps = 100

    /// The first history with a violation; plays on all cores.
    private static func first(of seeds: Range<UInt64>, _ mutation: Mutation? = nil) async throws -> Finding? {
        let seeds = Seeds(seeds)
        return try await withThrowingTaskGroup(of: Finding?.self) { group in
            for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
                group.addTask {
                    while let seed = seeds.next() {
                        let violations = try await apart {
                            try SimCluster(seed: seed, mutation: mutation).play(steps: steps)
                        }
                        if !violations.isEmpty {
                            seeds.stop()
                            return Finding(seed: seed, violations: violations)
                        }
                    }
                    return nil
                }
            }
            return try await group.compactMap { $0 }.min { $0.seed < $1.seed }
        }
    }

    /// Plays on a thread that is none of the tasks': they have one for each core, and other tests wait for them.
    private static func apart<Result: Sendable>(_ play: @escaping @Sendable () throws -> Result) async throws -> Result
    {
        try await withCheckedThrowingContinuation { done in
            DispatchQueue.global().async { done.resume(with: Swift.Result { try play() }) }
        }
    }

    @Test func `no history loses, displaces, refuses wrongly or answers twice`() async throws {
        guard let finding = try await Self.first(of: Self.rounds) else { return }
        Issue.record("seed \(finding.seed): \(finding.violations.prefix(3))")
        let again = try SimCluster(seed: finding.seed, isTraced: true)
        _ = try again.play(steps: Self.steps)
        print(again.history)
    }

    @Test(arguments: Mutation.allCases) func `the check finds each mistake`(mutation: Mutation) async throws {
        let finding = try await Self.first(of: Self.histories, mutation)
        let found = try #require(finding, "nobody noticed \(mutation.rawValue)")
        print("\(mutation.rawValue): history \(found.seed): \(found.violations[0])")
    }
}
