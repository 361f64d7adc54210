import ArgumentParser
import HeraldCluster
import HeraldConsole
import HeraldModel
import NIOCore
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct DrillBoardTests {
    private let own: NodeName
    private let other: NodeName

    init() throws {
        own = try #require(NodeName("own"))
        other = try #require(NodeName("other"))
    }

    private func record(of node: NodeName, isConfigured: Bool = false) throws -> DrillRecord {
        let request = try DrillOptions.parse(["drop", "--share", "5%", "--for", "10m", "--seed", "7"]).request
        let drill = try DrillReader.drill(request) { _ in nil }
        let started = WallTime(milliseconds: 1_790_000_000_000)
        return DrillRecord(request, drill, started: started, node: node, isConfigured: isConfigured)
    }

    private func entry(_ id: Int, _ sequence: UInt64, _ body: ByteBuffer = ByteBuffer()) -> LogEntry {
        LogEntry(subject: .drill(id), sequence: sequence, payload: body)
    }

    @Test func `a drill of any node starts here, and one of another node's configuration does not`() throws {
        var board = DrillBoard(own: own)
        let (operators, theirs, ours) = (
            try record(of: other), try record(of: other, isConfigured: true), try record(of: own, isConfigured: true)
        )
        #expect(board.take(entry(1, 10, operators.body)) == .start(1, operators))
        #expect(board.take(entry(2, 11, theirs.body)) == nil)
        #expect(board.take(entry(3, 12, ours.body)) == .start(3, ours))
        #expect(board.nextID == 4)
        #expect(board.ids(onlyConfiguredHere: false) == [1, 2, 3])
        #expect(board.ids(onlyConfiguredHere: true) == [3])
    }

    @Test func `an echo that comes late starts nothing that was stopped`() throws {
        var board = DrillBoard(own: own)
        let body = try record(of: own).body
        #expect(board.take(entry(1, 10, body)) != nil)
        #expect(board.take(entry(1, 12)) == .stop(1))
        #expect(board.take(entry(1, 10, body)) == nil)
        #expect(board.sequence(of: 1) == nil && board.ids(onlyConfiguredHere: false).isEmpty)
    }

    @Test func `a number that another node has taken is not tried again, and its drill is`() throws {
        var board = DrillBoard(own: own)
        board.isTaken(1)
        #expect(board.nextID == 2)
        #expect(board.take(entry(1, 5, try record(of: other).body)) != nil)
    }

    @Test func `a drill of another version is skipped, and can be stopped there alone`() throws {
        var board = DrillBoard(own: own)
        var newer = try record(of: other).body
        newer.setInteger(UInt8(2), at: 0)
        #expect(board.take(entry(1, 5, newer)) == .skip(1))
        #expect(board.take(entry(2, 6, ByteBuffer(string: "damaged"))) == .skip(2))
        #expect(board.nextID == 3)
    }

    @Test func `a renewal is a later record of the drill, and starts its time again`() throws {
        var board = DrillBoard(own: own)
        let request = try DrillOptions.parse(["drop", "--lease", "30s", "--first", "2"]).request
        let drill = try DrillReader.drill(request) { _ in nil }
        var record = DrillRecord(
            request,
            drill,
            started: WallTime(milliseconds: 1000),
            node: other,
            isConfigured: false
        )
        #expect(try DrillRecord(record.body).drill() == drill)
        #expect(board.take(entry(1, 10, record.body)) == .start(1, record))
        #expect(board.record(of: 1) == record)
        record.started = 20_000
        #expect(board.take(entry(1, 12, record.body)) == .start(1, record))
        #expect(board.sequence(of: 1) == 12)
        #expect(board.take(entry(1, 13)) == .stop(1) && board.record(of: 1) == nil)
    }

    @Test func `a record keeps the drill and its seed, and no token`() throws {
        let token = String(repeating: "a", count: 64)
        let slot = Slot(device: DeviceNumber(.max), app: AppNumber(9))
        let request = try DrillOptions.parse(["silence", "--accepted", "--token", token]).request
        let drill = try DrillReader.drill(request) { _ in slot }
        let started = WallTime(milliseconds: 1000)
        let written = DrillRecord(request, drill, started: started, node: own, isConfigured: false)
        #expect(!String(buffer: written.body).contains(token))
        let read = try DrillRecord(written.body)
        #expect(try read.drill() == drill)
        #expect(read.age(at: WallTime(milliseconds: 4000)) == .seconds(3))
        // The clock of this node is behind.
        #expect(read.age(at: WallTime(milliseconds: 0)) == .zero)
    }

    @Test(arguments: [
        ["reset", "--accepted"], ["refuse-stream"], ["goaway", "--two-step", "--reason", "Shutdown"],
        ["refuse", "--status", "418", "--reason", "a \"b\"", "--retry-after", "3s"], ["refuse", "--status", "502"],
    ])
    func `a record keeps every option of a kind`(words: [String]) throws {
        let request = try DrillOptions.parse(words).request
        let drill = try DrillReader.drill(request) { _ in nil }
        let started = WallTime(milliseconds: 1000)
        let written = DrillRecord(request, drill, started: started, node: own, isConfigured: false)
        #expect(try DrillRecord(written.body).drill() == drill)
    }

    @Test func `hits of all nodes are added up`() {
        func entry(_ id: Int, hits: Int, _ node: String) -> DrillEntry {
            var entry = DrillEntry(
                id: id,
                kind: "drop",
                what: "drop the connection",
                from: "operator",
                started: "",
                ends: "",
                secondsLeft: 5,
                hits: hits,
                seed: 1
            )
            entry.nodes = [node]
            return entry
        }
        let merged = DrillEntry.merged([[entry(2, hits: 1, "b")], [entry(1, hits: 3, "a"), entry(2, hits: 4, "a")]])
        #expect(merged.map(\.id) == [1, 2] && merged.map(\.hits) == [3, 5])
        #expect(merged.last?.nodes == ["a", "b"])
    }
}
