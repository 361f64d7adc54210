import NIOCore
import Testing

@testable import HeraldListener

struct AcceptTableTests {
    /// An event of a listener, and the connections that must go.
    ///
    /// Connections are named after their number.
    private enum Step {
        /// A connection from a network; nil if a load balancer will report it.
        case accept(String?, evicts: UInt64? = nil)
        case refuse(String)
        case identify(UInt64, String, evicts: UInt64? = nil)
        /// The handshake of a connection begins.
        case begin(UInt64)
        case know(UInt64)
        case close(UInt64)
        /// Seconds pass; these are too old then.
        case pass(Int64, overdue: [UInt64])
    }

    private static func network(_ text: String) throws -> ClientNetwork {
        ClientNetwork(try SocketAddress(ipAddress: text, port: 1))
    }

    /// Four connections, two unknown ones for each network, unknown for 30 s.
    private func play(_ steps: [Step]) throws {
        var table = AcceptTable<UInt64>(.init(connections: 4, unknownPerNetwork: 2, unknownAge: .seconds(30)))
        var now = NIODeadline.uptimeNanoseconds(0)
        var number: UInt64 = 0
        for step in steps {
            switch step {
            case .accept(let network, let evicted):
                number += 1
                let accepted = table.accept(number, from: try network.map(Self.network), at: now)
                #expect(accepted?.number == number && accepted?.eviction?.connection == evicted, "\(step)")
            case .refuse(let network):
                let accepted = table.accept(0, from: try Self.network(network), at: now)
                #expect(accepted == nil, "\(step)")
            case .identify(let number, let network, let evicted):
                let eviction = table.identify(number, as: try Self.network(network))
                #expect(eviction?.connection == evicted, "\(step)")
            case .begin(let number): table.handshakeBegan(number)
            case .know(let number): table.becameKnown(number)
            case .close(let number): table.closed(number)
            case .pass(let seconds, let overdue):
                now = now + .seconds(seconds)
                let gone = table.overdue(at: now).map(\.number)
                #expect(gone == overdue, "\(step)")
                let noticed = gone.filter { table.giveNotice(to: $0) }
                #expect(noticed == gone)
            }
        }
    }

    @Test(arguments: [(10_000, 10, 1000), (71, 50, 35), (71, 10, 16), (32, 1, 16), (100_000, 100, 100_000)])
    func `one network has its share of a listener, and 16 connections at least`(all: Int, percent: Int, allowed: Int) {
        var configuration = ListenerConfiguration(name: "test", host: "127.0.0.1", port: 0)
        configuration.maximumConnections = all
        configuration.unknownShare = percent
        #expect(configuration.unknownPerNetwork == allowed)
    }

    @Test func `at the listener's limit the oldest unknown connection makes way`() throws {
        try play([
            .accept("192.0.2.1"), .accept("192.0.2.2"), .accept("192.0.2.3"), .accept("192.0.2.4"),
            .know(1), .accept("192.0.2.5", evicts: 2), .close(3), .accept("192.0.2.6"),
            .accept("192.0.2.7", evicts: 4),
        ])
    }

    @Test func `known connections never make way`() throws {
        try play([
            .accept("192.0.2.1"), .accept("192.0.2.2"), .accept("192.0.2.3"), .accept("192.0.2.4"),
            .know(1), .know(2), .know(3), .know(4), .refuse("192.0.2.5"), .pass(3600, overdue: []),
            .close(2), .accept("192.0.2.5"), .accept("192.0.2.6", evicts: 5),
        ])
    }

    @Test func `at a network's limit its oldest unknown connection makes way`() throws {
        try play([
            .accept("192.0.2.1"), .accept("192.0.2.1"), .accept("192.0.2.1", evicts: 1), .accept("192.0.2.2"),
            .accept("192.0.2.1", evicts: 2), .accept("2001:db8::1"), .accept("2001:db8::2", evicts: 3),
        ])
    }

    @Test func `a network's known connections do not count`() throws {
        try play([
            .accept("192.0.2.1"), .know(1), .accept("192.0.2.1"), .know(2), .accept("192.0.2.1"),
            .accept("192.0.2.1"),
            // The listener is full; the network has two unknown connections.
            .accept("192.0.2.1", evicts: 3),
        ])
    }

    @Test func `behind a load balancer the reported network counts`() throws {
        try play([
            .accept(nil), .accept(nil), .accept(nil), .identify(1, "192.0.2.1"), .identify(2, "192.0.2.2"),
            .identify(3, "192.0.2.1"), .accept(nil), .identify(4, "192.0.2.1", evicts: 1),
            // A second header changes nothing.
            .identify(4, "192.0.2.2"), .identify(9, "192.0.2.2"), .accept("192.0.2.2"),
            .accept("192.0.2.2", evicts: 2),
        ])
    }

    @Test func `an unknown connection goes at its maximum age, a known one does not`() throws {
        try play([
            .accept("192.0.2.1"), .pass(10, overdue: []), .accept("192.0.2.2"), .accept("192.0.2.3"), .know(2),
            .pass(19, overdue: []), .pass(1, overdue: [1]), .know(1), .pass(10, overdue: [3]),
            .pass(3600, overdue: []),
        ])
    }

    @Test func `an overdue connection keeps its place until it is closed, and makes way first`() throws {
        try play([
            .accept("192.0.2.1"), .accept("192.0.2.2"), .accept("192.0.2.2"), .pass(29, overdue: []),
            .accept("192.0.2.4"), .pass(1, overdue: [1, 2, 3]), .pass(1, overdue: []),
            // The listener is full, and later the network.
            .accept("192.0.2.5", evicts: 1), .close(3), .accept("192.0.2.2"), .accept("192.0.2.2", evicts: 2),
            .accept("192.0.2.7", evicts: 4),
        ])
    }

    @Test func `silent connections make way for handshakes that have begun, as long as most are silent`() throws {
        try play([
            .accept("192.0.2.1"), .begin(1), .accept("192.0.2.2"), .accept("192.0.2.3"), .accept("192.0.2.4"),
            .accept("192.0.2.5", evicts: 2), .begin(3), .begin(4), .begin(4),
            // Three have begun, and one is silent.
            .accept("192.0.2.6", evicts: 1), .accept("192.0.2.7", evicts: 5),
        ])
    }

    @Test func `what became known meanwhile is not closed, whatever was decided before`() throws {
        var table = AcceptTable<Int>(.init(connections: 2, unknownPerNetwork: 2, unknownAge: .seconds(30)))
        let network = try Self.network("192.0.2.1")
        let start = NIODeadline.uptimeNanoseconds(0)
        let numbers = (0..<2).compactMap { table.accept($0, from: network, at: start)?.number }
        let overdue = table.overdue(at: start + .seconds(30)).map(\.number)
        #expect(overdue == numbers)
        // Known before its event loop gives it notice, or within the notice.
        table.becameKnown(numbers[0])
        let noticed = numbers.filter { table.giveNotice(to: $0) }
        #expect(noticed == [numbers[1]])
        table.becameKnown(numbers[1])
        #expect(!table.isUnderNotice(numbers[1]))
        table.closed(numbers[1])
        _ = table.accept(2, from: network, at: start)
        let third = table.accept(3, from: network, at: start)
        let evicted = try #require(third?.eviction)
        #expect(evicted.connection == 2 && table.mustClose(evicted.number) && table.connections.count == 3)
        table.becameKnown(evicted.number)
        #expect(!table.mustClose(evicted.number) && table.count == 3)
        let fourth = table.accept(4, from: network, at: start)
        let other = try #require(fourth?.eviction)
        table.closed(other.number)
        #expect(!table.mustClose(other.number) && table.connections.count == 3)
    }

    /// Plays a storm of 5,000 silent connections, and 20 honest ones among them, which begin their handshake after 20
    /// further connections, and are known after 200.
    ///
    /// - Returns: How many honest ones from the storm's network, and from others, got in.
    private func storm(_ limits: AcceptTable<Int>.Limits) throws -> [Int] {
        var table = AcceptTable<Int>(limits)
        let networks = [try Self.network("192.0.2.1"), try Self.network("198.51.100.1")]
        var evicted: Set<UInt64> = []
        var honest: [(number: UInt64, begins: Int, arrives: Int, kind: Int)] = []
        for time in 0..<5000 {
            let kind: Int? = time % 250 == 100 ? (time / 250) % 2 : nil
            let accepted = table.accept(time, from: networks[kind ?? 0], at: .uptimeNanoseconds(0))
            if let eviction = accepted?.eviction {
                evicted.insert(eviction.number)
                table.closed(eviction.number)
            }
            if let kind, let accepted { honest.append((accepted.number, time + 20, time + 200, kind)) }
            for one in honest where !evicted.contains(one.number) {
                if one.begins == time { table.handshakeBegan(one.number) }
                if one.arrives == time { table.becameKnown(one.number) }
            }
            #expect(table.count <= limits.connections)
        }
        return [0, 1].map { kind in honest.count { $0.kind == kind && !evicted.contains($0.number) } }
    }

    @Test func `a storm of silent connections from one network keeps nobody out`() throws {
        // Oldest first, whatever its handshake, let none of the ten in that come from the storm's own network.
        #expect(try storm(.init(connections: 1000, unknownPerNetwork: 100, unknownAge: .seconds(30))) == [10, 10])
        // The same without a share: nobody got in.
        #expect(try storm(.init(connections: 100, unknownPerNetwork: 100, unknownAge: .seconds(30))) == [10, 10])
    }

    @Test func `what is closed or evicted counts no more`() throws {
        var table = AcceptTable<Int>(.init(connections: 100, unknownPerNetwork: 10, unknownAge: .seconds(30)))
        let network = try Self.network("192.0.2.1")
        for connection in 0..<10_000 {
            guard let accepted = table.accept(connection, from: network, at: .uptimeNanoseconds(0)) else { continue }
            if connection % 2 == 0 { table.becameKnown(accepted.number) }
            table.closed(accepted.number)
        }
        #expect(table.count == 0 && table.unknownCount == 0 && table.connections.isEmpty)
    }
}
