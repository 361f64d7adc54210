import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

extension ClusterRegistry {
    /// A node's registry, loaded from a log; its followers have no time.
    static func loaded(_ name: String, from log: any ReplicatedLog) async throws -> ClusterRegistry {
        let node = try #require(NodeName(name))
        let partitions = try #require(Partitions(count: 4))
        let clock = ManualClock()
        let context = ClusterContext(
            own: ClaimRecord(node: node, incarnation: 1),
            partitions: partitions,
            log: log,
            journal: MemoryStore(clock: clock),
            clock: clock,
            scheduler: SimTime(),
            logger: .silent
        )
        let cluster = try await ClusterIdentity.open(partitions, at: clock.now(), context.changes)
        let registry = ClusterRegistry(context, incarnation: cluster.incarnation)
        try await registry.start()
        return registry
    }
}
