import Dispatch
import Testing

@testable import HeraldSimulation

/// Random histories of a whole cluster: real post offices and mailboxes on a log that lags, delays, loses and refuses.
@Suite struct SimClusterTests {
    private static let histories: Range<UInt64> = 1..<2_001

    /// Plays on a thread that is none of the tasks': they have one for each core, and other tests wait for them.
    private static func finding(_ mutation: Mutation? = nil) async throws -> Simulation.Finding? {
        try await withCheckedThrowingContinuation { done in
            DispatchQueue.global().async {
                done.resume(with: Result { try Simulation.finding(in: histories, mutation: mutation) })
            }
        }
    }

    @Test func `no history loses, displaces, refuses wrongly or answers twice`() async throws {
        guard let finding = try await Self.finding() else { return }
        Issue.record("history \(finding.seed): \(finding.violations.prefix(3))")
        print(try Simulation.history(of: finding.seed))
    }

    @Test(arguments: Mutation.allCases) func `the check finds each mistake`(mutation: Mutation) async throws {
        let finding = try await Self.finding(mutation)
        let found = try #require(finding, "nobody noticed \(mutation.rawValue)")
        print("\(mutation.rawValue): history \(found.seed): \(found.violations[0])")
    }
}
