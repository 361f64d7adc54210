import Testing

@testable import HeraldSimulation

/// Random histories of a device that moves away from nodes that stand still or are cut off.
@Suite struct SimFencesTests {
    private static let histories: Range<UInt64> = 1..<1_001

    private static func first(_ mutation: FenceMutation?) throws -> (seed: UInt64, violations: [String])? {
        for seed in histories {
            let violations = try SimFences(seed: seed, mutation).play(steps: 60)
            if !violations.isEmpty { return (seed, violations) }
        }
        return nil
    }

    @Test func `no older connection ends the newest one, or changes what it was told`() throws {
        let found = try Self.first(nil)
        #expect(found == nil, "history \(found?.seed ?? 0): \(found?.violations.first ?? "")")
    }

    @Test(arguments: FenceMutation.allCases) func `the check finds each mistake`(mutation: FenceMutation) throws {
        let found = try #require(try Self.first(mutation), "nobody noticed \(mutation.rawValue)")
        print("\(mutation.rawValue): history \(found.seed): \(found.violations[0])")
    }
}
