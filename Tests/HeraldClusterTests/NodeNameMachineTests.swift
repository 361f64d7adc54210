import HeraldModel
import Testing

@testable import HeraldCluster

/// One process at a time has the name of a node.
@Suite struct NodeNameMachineTests {
    private let own: NodeRecord
    private let other: NodeRecord
    private var machine: NodeNameMachine

    init() throws {
        own = try Self.record(folder: 1, incarnation: 10)
        other = try Self.record(folder: 2, incarnation: 20)
        machine = NodeNameMachine(own: own)
    }

    private static func record(
        folder: UInt64,
        incarnation: UInt64,
        state: NodeRecord.State = .serving
    ) throws -> NodeRecord {
        NodeRecord(
            node: try #require(NodeName("a")),
            folder: folder,
            incarnation: incarnation,
            version: "1.0.0",
            started: WallTime(seconds: 1_800_000_000),
            newestTokenKey: 1,
            state: state
        )
    }

    private static let looks = Int(NodeNameMachine.silence / NodeNameMachine.look)

    @Test mutating func `the first node of a cluster serves at once, and renews its record`() {
        #expect(machine.read(.init(sequence: 0, record: nil)) == .write(expecting: 0))
        #expect(machine.wrote(.stored(7)) == .serve(renewAfter: NodeNameMachine.renewal))
        #expect(machine.held == 7)
        #expect(machine.renew() == .write(expecting: 7))
        #expect(machine.wrote(.stored(8)) == .serve(renewAfter: NodeNameMachine.renewal))
    }

    @Test mutating func `a node that is alive is not replaced`() {
        #expect(machine.read(.init(sequence: 7, record: other)) == .read(after: NodeNameMachine.look))
        #expect(machine.read(.init(sequence: 8, record: other)) == .giveWay(to: other))
    }

    @Test mutating func `a node that is silent is replaced`() {
        let seen = NodeNameMachine.Seen(sequence: 7, record: other)
        for _ in 0..<Self.looks { #expect(machine.read(seen) == .read(after: NodeNameMachine.look)) }
        #expect(machine.read(seen) == .write(expecting: 7))
    }

    @Test mutating func `of two that replace a node, one serves`() throws {
        let seen = NodeNameMachine.Seen(sequence: 7, record: other)
        for _ in 0...Self.looks { _ = machine.read(seen) }
        #expect(machine.wrote(.moved(9)) == .readNow)
        let third = try Self.record(folder: 3, incarnation: 30)
        #expect(machine.read(.init(sequence: 9, record: third)) == .giveWay(to: third))
    }

    @Test(arguments: [AppendOutcome.unknown, .notSent])
    mutating func `a node that replaces a silent one writes again until it is answered`(outcome: AppendOutcome) throws {
        let before = try Self.record(folder: 1, incarnation: 9)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
        _ = machine.wrote(outcome)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
        #expect(machine.wrote(.stored(8)) == .serve(renewAfter: NodeNameMachine.renewal))
    }

    @Test mutating func `a process that was killed is replaced at once on its folder`() throws {
        let before = try Self.record(folder: 1, incarnation: 9)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
    }

    @Test mutating func `a process that has left is replaced at once`() throws {
        let before = try Self.record(folder: 2, incarnation: 9, state: .left)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
        machine = NodeNameMachine(own: own)
        _ = machine.read(.init(sequence: 6, record: other))
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
    }

    @Test mutating func `a node that was replaced gives way`() {
        _ = machine.read(.init(sequence: 0, record: nil))
        _ = machine.wrote(.stored(7))
        _ = machine.renew()
        #expect(machine.wrote(.moved(9)) == .readNow)
        #expect(machine.read(.init(sequence: 9, record: other)) == .giveWay(to: other))
    }

    @Test(arguments: [AppendOutcome.unknown, .notSent])
    mutating func `a renewal without an answer is looked for in the log`(outcome: AppendOutcome) {
        _ = machine.read(.init(sequence: 0, record: nil))
        _ = machine.wrote(.stored(7))
        _ = machine.renew()
        let order = machine.wrote(outcome)
        #expect(order == .readNow || order == .read(after: NodeNameMachine.look))
        // At once: the servers may have been silent for the time of several renewals.
        #expect(machine.read(.init(sequence: 8, record: own)) == .serve(renewAfter: .zero))
        #expect(machine.held == 8)
    }

    @Test mutating func `while the log cannot be reached, it is asked again`() {
        #expect(machine.couldNotRead() == .read(after: NodeNameMachine.look))
    }
}
