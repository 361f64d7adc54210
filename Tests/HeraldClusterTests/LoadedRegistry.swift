import HeraldCluster
import HeraldModel
import HeraldTestSupport
import Testing

extension ClusterRegistry {
    /// A node's registry, loaded from a log; its followers have no time.
    static func loaded(_ name: String, from log: any ReplicatedLog) async throws -> ClusterRegistry {
        let node = try #require(NodeName(name))
        let partitions = try #require(Partitions(count: 4))
        let barriers = LogBarriers(log: log, node: node)
        let changes = RecordChanges(log: log, barriers: barriers)
        let cluster = try await ClusterIdentity.open(partitions, at: ManualClock().now(), changes)
        let registry = ClusterRegistry(
            partitions: partitions,
            numbers: ClusterNumbers(incarnation: cluster.incarnation, changes: changes),
            changes: changes,
            scheduler: SimTime(),
            logger: .silent
        ) { stream, freshness, apply in
            LogFollower(stream, log: log, barriers: barriers, scheduler: SimTime(), freshness: freshness, apply: apply)
        }
        try await registry.start()
        return registry
    }
}
