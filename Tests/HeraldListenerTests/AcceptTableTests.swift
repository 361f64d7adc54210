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
            case .know(let number): table.becameKnown(number)
            case .close(let number): table.closed(number)
            case .pass(let seconds, let overdue):
                now = now + .seconds(seconds)
                let gone = table.overdue(at: now)
                #expect(gone == overdue, "\(step)")
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
