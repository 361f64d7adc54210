import Dispatch
import Foundation
import Synchronization

/// Histories of simulated clusters, each played from its own seed.
enum Simulation {
    struct Finding {
        let seed: UInt64
        let violations: [String]
    }

    private struct State {
        /// The seeds of histories that nobody plays yet.
        var rest: Range<UInt64>
        var findings: [Finding] = []
        var failure: (any Error)?
    }

    static let steps = 100

    /// The first history with a violation; plays on all cores, beside the threads of tasks, and returns when one is found.
    static func finding(in seeds: Range<UInt64>, mutation: Mutation? = nil) throws -> Finding? {
        let state = Mutex(State(rest: seeds))
        DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) { _ in
            while let seed = state.withLock({ $0.rest.popFirst() }) {
                let result = Result { try SimCluster(seed: seed, mutation: mutation).play(steps: steps) }
                if case .success([]) = result { continue }
                state.withLock {
                    $0.rest = 0..<0
                    switch result {
                    case .success(let violations): $0.findings.append(Finding(seed: seed, violations: violations))
                    case .failure(let error): $0.failure = error
                    }
                }
            }
        }
        return try state.withLock {
            if let failure = $0.failure { throw failure }
            return $0.findings.min { $0.seed < $1.seed }
        }
    }

    /// The events of a history, a line each.
    static func history(of seed: UInt64) throws -> String {
        let cluster = try SimCluster(seed: seed, isTraced: true)
        _ = try cluster.play(steps: steps)
        return cluster.history
    }
}
