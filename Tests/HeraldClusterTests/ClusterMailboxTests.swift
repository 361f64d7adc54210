import Dispatch
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import NIOCore
import Synchronization
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

@Suite struct ClusterMailboxTests {
    @Test(arguments: StoreConformance.mailboxRules)
    func `the cluster's mailbox keeps every rule`(rule: StoreConformance.Rule) async throws {
        try await StoreConformance.check(rule, on: .simulatedCluster)
    }
}

extension StoreEngine {
    static let simulatedCluster = StoreEngine(
        name: "simulated cluster",
        isDurable: false,
        journal: .separate,
        expiresByItself: true
    ) { clock in
        try await SimulatedClusterFixture(clock: clock)
    }
}

/// A cluster's mailbox on a log that answers at once, with the rest of a store in memory.
private final class SimulatedClusterFixture: StoreFixture {
    private let memory: MemoryStore
    private let chance = Promptness()

    var store: AnyStore { memory }

    init(clock: any WallClock) async throws {
        let scheduler = QueueScheduler()
        let log = SimLog(scheduler: scheduler, chance: chance)
        memory = MemoryStore(clock: clock)
        let partitions = try #require(Partitions(count: 1))
        let node = try #require(NodeName("a"))
        var configuration = ClusterMailboxConfiguration()
        configuration.deadline = .seconds(2)
        configuration.retry = .milliseconds(50)
        let context = ClusterContext(
            own: ClaimRecord(node: node, incarnation: 1),
            partitions: partitions,
            log: log,
            journal: memory,
            clock: clock,
            scheduler: scheduler,
            logger: Logger(label: "test")
        )
        let mailbox = ClusterMailbox(context, configuration: configuration)
        memory.leave(mailbox: mailbox)
        try await mailbox.start()
    }

    func restart() async throws {}

    func setFailsWrites(_ fails: Bool) {
        chance.fails.withLock { $0 = fails }
        memory.setFailsWrites(fails)
    }

    func close() async {}
}

/// Chance that has no hand in it: every append is stored, or refused.
final class Promptness: SimLog.Chance {
    let fails = Mutex(false)

    func fate(of message: LogMessage) -> SimLog.Fate {
        fails.withLock { $0 } ? .refused : .stored(.zero, answered: .zero)
    }

    func lag() -> Duration { .zero }
    func delay() -> Duration { .zero }
    func replica() -> Int { 0 }
}

/// Real time on a queue of its own, in the order of the calls.
final class QueueScheduler: ClusterScheduler {
    private let queue = DispatchQueue(label: "cluster-scheduler")

    private let standing: NIODeadline?

    /// - Parameter standsStill: Whether the clock stands still, so that no node on a busy machine believes that it has.
    init(standsStill: Bool = false) { standing = standsStill ? .now() : nil }

    var now: NIODeadline { standing ?? .now() }

    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        if delay == .zero {
            queue.async(execute: work)
        } else {
            queue.asyncAfter(deadline: .now() + .nanoseconds(Int(TimeAmount(delay).nanoseconds)), execute: work)
        }
    }
}
