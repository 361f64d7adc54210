import HeraldModel
import NIOCore
import Testing

@testable import HeraldCluster
@testable import HeraldSimulation

/// A node that is gone for good.
@Suite struct NodeEvictionTests {
    private let log = MemoryLog()
    private let time = SimTime()
    private let partitions: Partitions
    private let gone: NodeRecord
    private let other: NodeName

    init() throws {
        partitions = try #require(Partitions(count: 2))
        other = try #require(NodeName("other"))
        gone = NodeRecord(
            node: try #require(NodeName("gone")),
            folder: 1,
            incarnation: 10,
            version: "0.9.0",
            started: WallTime(seconds: 1_800_000_000),
            newestTokenKey: 1
        )
    }

    @discardableResult
    private func store(_ subject: LogSubject, _ payload: ByteBuffer, in stream: LogStream) async throws -> UInt64 {
        let outcome = await withCheckedContinuation { continuation in
            log.append(LogMessage(subject, payload: payload), to: stream) { continuation.resume(returning: $0) }
        }
        guard case .stored(let sequence) = outcome else { throw LogFailure.unavailable }
        return sequence
    }

    private func claim(_ number: UInt64, _ holder: ClaimRecord) async throws {
        let device = DeviceNumber(number)
        let partition = partitions.partition(of: device)
        try await store(.claim(device, partition), holder.body, in: .mailbox(partition))
    }

    /// The node that the log names as the holder of a device.
    private func holder(_ number: UInt64) async throws -> NodeName? {
        let device = DeviceNumber(number)
        let partition = partitions.partition(of: device)
        let entries = try await withCheckedThrowingContinuation { continuation in
            log.read([.claim(device, partition)], in: .mailbox(partition), atLeast: 0) {
                continuation.resume(with: $0)
            }
        }
        return try entries.first.flatMap { $0.isTombstone ? nil : try ClaimRecord($0.payload).node }
    }

    private func evict(_ sequence: UInt64) async throws -> Int {
        let seen = SeenNode(record: gone, sequence: sequence, renewed: WallTime(seconds: 1_800_000_000))
        return try await NodeEviction(seen, partitions, log: log, scheduler: time).run()
    }

    @Test func `its devices are released and its record is removed`() async throws {
        let sequence = try await store(.meta("node.gone"), gone.body, in: .meta)
        for number in UInt64(1)...6 { try await claim(number, gone.claims) }
        // One is connected to another node by now, and one to a later process of this one.
        try await claim(2, ClaimRecord(node: other, incarnation: 5))
        try await claim(3, ClaimRecord(node: gone.node, incarnation: 11))
        #expect(try await evict(sequence) == 4)
        #expect(try await holder(1) == nil)
        #expect(try await holder(2) == other)
        #expect(try await holder(3) == gone.node)
        let nodes = NodeList(
            own: ClaimRecord(node: other, incarnation: 5),
            log: log,
            barriers: LogBarriers(log: log, node: other),
            scheduler: time
        )
        try await nodes.start()
        #expect(nodes.all.isEmpty)
        nodes.close()
    }

    @Test func `a node that renews its record meanwhile stays`() async throws {
        let sequence = try await store(.meta("node.gone"), gone.body, in: .meta)
        try await store(.meta("node.gone"), gone.body, in: .meta)
        await #expect(throws: NodeEviction.Failure.cameBack(gone.node)) { try await evict(sequence) }
    }

    @Test func `what the servers do not take is done again`() async throws {
        let sequence = try await store(.meta("node.gone"), gone.body, in: .meta)
        try await claim(1, gone.claims)
        log.fail(.notSent)
        await #expect(throws: NodeEviction.Failure.unavailable(gone.node)) { try await evict(sequence) }
        #expect(try await holder(1) == gone.node)
        #expect(try await evict(sequence) == 1)
        #expect(try await holder(1) == nil)
    }
}
