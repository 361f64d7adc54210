import HeraldCluster
import Testing

/// One node at a time serves a cluster.
@Suite struct ActiveNodeMachineTests {
    private let own: ActiveNodeRecord
    private let other: ActiveNodeRecord
    private var machine: ActiveNodeMachine

    init() throws {
        own = ActiveNodeRecord(node: try #require(NodeName("a")), folder: 1, process: 10)
        other = ActiveNodeRecord(node: try #require(NodeName("b")), folder: 2, process: 20)
        machine = ActiveNodeMachine(own: own)
    }

    private static let looks = Int(ActiveNodeMachine.silence / ActiveNodeMachine.look)

    @Test mutating func `the first node of a cluster serves at once, and renews its record`() {
        #expect(machine.read(.init(sequence: 0, record: nil)) == .write(expecting: 0))
        #expect(machine.wrote(.stored(7)) == .serve(renewAfter: ActiveNodeMachine.renewal))
        #expect(machine.held == 7)
        #expect(machine.renew() == .write(expecting: 7))
        #expect(machine.wrote(.stored(8)) == .serve(renewAfter: ActiveNodeMachine.renewal))
    }

    @Test mutating func `a node that is alive is not replaced`() {
        #expect(machine.read(.init(sequence: 7, record: other)) == .read(after: ActiveNodeMachine.look))
        #expect(machine.read(.init(sequence: 8, record: other)) == .giveWay(to: other))
    }

    @Test mutating func `a node that is silent is replaced`() {
        let seen = ActiveNodeMachine.Seen(sequence: 7, record: other)
        for _ in 0..<Self.looks { #expect(machine.read(seen) == .read(after: ActiveNodeMachine.look)) }
        #expect(machine.read(seen) == .write(expecting: 7))
    }

    @Test mutating func `of two that replace a node, one serves`() {
        let seen = ActiveNodeMachine.Seen(sequence: 7, record: other)
        for _ in 0...Self.looks { _ = machine.read(seen) }
        #expect(machine.wrote(.moved(9)) == .readNow)
        let third = ActiveNodeRecord(node: other.node, folder: 3, process: 30)
        #expect(machine.read(.init(sequence: 9, record: third)) == .giveWay(to: third))
    }

    @Test(arguments: [AppendOutcome.unknown, .notSent])
    mutating func `a node that replaces a silent one writes again until it is answered`(outcome: AppendOutcome) {
        let before = ActiveNodeRecord(node: own.node, folder: own.folder, process: 11)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
        _ = machine.wrote(outcome)
        #expect(machine.read(.init(sequence: 7, record: before)) == .write(expecting: 7))
        #expect(machine.wrote(.stored(8)) == .serve(renewAfter: ActiveNodeMachine.renewal))
    }

    @Test mutating func `a process that was killed is replaced at once on its folder`() {
        let before = ActiveNodeRecord(node: own.node, folder: own.folder, process: 11)
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
        #expect(order == .readNow || order == .read(after: ActiveNodeMachine.look))
        #expect(machine.read(.init(sequence: 8, record: own)) == .serve(renewAfter: ActiveNodeMachine.renewal))
        #expect(machine.held == 8)
    }

    @Test mutating func `while the log cannot be reached, it is asked again`() {
        #expect(machine.couldNotRead() == .read(after: ActiveNodeMachine.look))
    }
}
