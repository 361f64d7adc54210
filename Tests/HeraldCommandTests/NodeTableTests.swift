import HeraldModel
import Testing

@testable import HeraldCluster
@testable import HeraldCommand
@testable import HeraldService

/// The nodes of a cluster as an operator sees them.
@Suite struct NodeTableTests {
    private let now = WallTime(seconds: 1_800_000_000)

    private func node(_ name: String, _ age: Duration, left: Bool = false) throws -> SeenNode {
        let record = NodeRecord(
            node: try #require(NodeName(name)),
            folder: 1,
            incarnation: 1,
            version: "0.9.0",
            started: WallTime(seconds: 1_799_999_000),
            newestTokenKey: 1,
            state: left ? .left : .serving
        )
        return SeenNode(record: record, sequence: 1, renewed: now - age)
    }

    private func report(devices: Int = 0, problems: [String] = [], warnings: [String] = []) -> NodeReport {
        NodeReport(devicesConnected: devices, problems: problems, warnings: warnings)
    }

    @Test func `a node lives that answers, or that has renewed its record lately`() throws {
        let nodes = try [
            node("answers", .seconds(60)), node("fresh", .seconds(20)), node("late", .seconds(21)),
            node("left", .seconds(1), left: true), node("ahead", .seconds(-3)),
        ]
        let table = NodeTable(nodes, at: now, [nodes[0].record.node: report(devices: 7)])
        #expect(table.entries.map(\.state) == [.live, .live, .silent, .left, .live])
        #expect(table.entries.map(\.devicesConnected) == [7, nil, nil, nil, nil])
        #expect(table.entries.map(\.lastSignSeconds) == [0, 20, 21, 1, 0])
        let texts = table.findings.map(\.line)
        #expect(texts.count == 4)
        #expect(texts[0].hasPrefix("node fresh does not answer"))
        #expect(texts[1].contains("herald cluster evict late"))
        #expect(texts[2].hasPrefix("node left was stopped: start it"))
        #expect(table.findings.allSatisfy { $0.severity == .refusal })
    }

    @Test func `the faults of a node are named with it`() throws {
        let node = try node("one", .zero)
        let table = NodeTable([node], at: now, [node.record.node: report(problems: ["it fails"], warnings: ["it may"])])
        #expect(table.findings.map(\.line) == ["node one: it fails", "node one: it may"])
        #expect(table.findings.map(\.severity) == [.refusal, .warning])
    }

    @Test func `a live node is not evicted, and for an unknown one the names are listed`() throws {
        let table = try NodeTable(
            [node("one", .zero), node("two", .seconds(30)), node("three", .zero, left: true)],
            at: now,
            [:]
        )
        #expect(try ClusterEvict.check("two", table.entries).state == .silent)
        #expect(try ClusterEvict.check("three", table.entries).state == .left)
        let live = #expect(throws: CommandError.self) { try ClusterEvict.check("one", table.entries) }
        #expect(live?.message.contains("stop it first") == true)
        let unknown = #expect(throws: CommandError.self) { try ClusterEvict.check("four", table.entries) }
        #expect(unknown?.message.contains("one (live), two (silent), three (left)") == true)
    }

    @Test func `a node that is behind says with what, and what follows`() {
        let fresh = Duration.seconds(1)
        let old = Duration.seconds(6)
        #expect(FollowedStreams.problem([(.apps, fresh), (.trust, old)]) == nil)
        #expect(FollowedStreams.warning([(.apps, old), (.trust, fresh), (.meta, fresh)]) == nil)
        #expect(FollowedStreams.problem([(.apps, old)])?.contains("HERALD_APPS") == true)
        #expect(FollowedStreams.problem([(.mailbox(Partition(0)), old)])?.contains("HERALD_BOX_0") == true)
        #expect(FollowedStreams.warning([(.trust, old)])?.contains("revoke") == true)
        #expect(throws: CommandError.self) { try FollowedStreams.check([(.meta, .seconds(3301))]) }
    }
}
