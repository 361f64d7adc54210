import CNghttp2
import NIOCore
import Testing

@testable import HeraldGateway

/// The errors that libnghttp2 ignores, because it keeps no closed streams and no priorities.
@Suite
struct `frames that the library ignores` {
    private let reset = RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes
    private let data = RawFrame(RawFrame.data, flags: 1, stream: 1, Array("{}".utf8)).bytes

    /// The code of the GOAWAY after some bytes; nil if the connection goes on.
    private func error(_ exchange: Exchange, _ bytes: [UInt8], oneByOne: Bool = false) -> UInt32? {
        if oneByOne { for byte in bytes { exchange.receive([byte]) } } else { exchange.receive(bytes) }
        let goAway = exchange.sent().first { $0.type == RawFrame.goAway }
        #expect((goAway != nil) == exchange.session.isOver)
        return goAway.map { RawFrame.number($0.payload[4...]) }
    }

    private func opened(streams: Int = 1000) throws -> Exchange {
        let exchange = try Exchange(streams: streams)
        exchange.open()
        return exchange
    }

    /// A connection whose stream 1 is answered and closed.
    private func answered() throws -> Exchange {
        let exchange = try opened()
        exchange.receive(RawPeer.request(1))
        exchange.session.reply(to: try #require(exchange.requests().first), .accepted)
        _ = exchange.sent()
        return exchange
    }

    @Test(arguments: [false, true]) func `end the connection if the client has closed the stream`(oneByOne: Bool) throws
    {
        let half = RawPeer.request(1, ends: false)
        for late in [data, RawPeer.request(1), RawPeer.request(1, body: [])] {
            #expect(error(try opened(), half + reset + late, oneByOne: oneByOne) == 5)
            #expect(error(try answered(), late, oneByOne: oneByOne) == 5)
        }
    }

    @Test func `end the connection if an identifier is smaller than the one before`() throws {
        for stream: UInt32 in [1, 3] {
            let exchange = try opened()
            #expect(error(exchange, RawPeer.request(5) + RawPeer.request(stream)) == 1)
            #expect(exchange.requests().map(\.stream.id) == [5])
        }
        // The library itself refuses DATA and HEADERS on a stream that the client has ended and Herald has not.
        #expect(error(try opened(), RawPeer.request(1) + data) == 5)
    }

    @Test(arguments: [false, true]) func `end the connection if a priority is impossible`(oneByOne: Bool) throws {
        let itself = RawFrame(RawFrame.priority, stream: 3, RawFrame.big(3) + [15])
        let exclusive = RawFrame(RawFrame.priority, stream: 3, RawFrame.big(3 | 0x8000_0000) + [15])
        let connection = RawFrame(RawFrame.priority, RawFrame.big(3) + [15])
        for frame in [itself, exclusive, connection] {
            #expect(error(try opened(), RawPeer.request(1) + frame.bytes, oneByOne: oneByOne) == 1)
        }
        let short = RawFrame(RawFrame.priority, stream: 3, RawFrame.big(3))
        #expect(error(try opened(), short.bytes, oneByOne: oneByOne) == 6)
        let possible = RawFrame(RawFrame.priority, stream: 3, RawFrame.big(1) + [15])
        let exchange = try opened()
        #expect(error(exchange, possible.bytes + RawPeer.request(1) + possible.bytes, oneByOne: oneByOne) == nil)
        #expect(exchange.requests().count == 1)
    }

    @Test func `are ignored if they may have been in flight when Herald reset the stream`() throws {
        let exchange = try opened(streams: 1)
        exchange.receive(RawPeer.request(1, ends: false))
        // In one read burst, and after the reset was sent.
        let late = RawPeer.request(3, ends: false) + RawFrame(RawFrame.data, stream: 3, [1]).bytes
        #expect(error(exchange, late) == nil)
        let later = RawFrame(RawFrame.data, stream: 3, [1]).bytes + RawPeer.request(3, body: [])
        #expect(error(exchange, later) == nil)
        #expect(error(exchange, data) == nil)
        #expect(exchange.requests().map(\.stream.id) == [1])
    }

    @Test func `are ignored after GOAWAY, which closes streams unheard`() throws {
        let exchange = try opened()
        exchange.receive(RawPeer.request(1, ends: false))
        exchange.session.goAway([])
        _ = exchange.sent()
        exchange.receive(RawPeer.request(3) + RawPeer.request(3))
        #expect(exchange.sent().isEmpty)
        exchange.receive(data)
        #expect(exchange.requests().map(\.stream.id) == [1])
    }

    @Test func `are WINDOW_UPDATE and RST_STREAM on a closed stream`() throws {
        let update = RawFrame(RawFrame.windowUpdate, stream: 1, RawFrame.big(1)).bytes
        #expect(error(try answered(), update + reset + reset) == nil)
    }

    @Test func `need a memory that has a limit, and are ignored beyond it`() {
        var closed = ClosedStreams()
        let opened = stride(from: Int32(1), through: 4001, by: 2).allSatisfy { closed.opens($0) }
        #expect(opened)
        for stream in stride(from: Int32(3), through: 1203, by: 4) { closed.sentReset(stream) }
        // 301 resets, of which the first 45 are forgotten: up to 179 all streams may have been reset.
        #expect(closed.error(on: 1) == nil && closed.error(on: 177) == nil && closed.error(on: 179) == nil)
        #expect(closed.error(on: 181) != nil && closed.error(on: 183) == nil && closed.error(on: 1203) == nil)
        #expect(closed.error(on: 4001) != nil && closed.error(on: 4003) == nil)
    }

    @Test(arguments: [1, 3, 2_147_483_647]) func `are judged whatever the first identifier is`(first: Int32) {
        var closed = ClosedStreams()
        #expect(closed.opens(first) && !closed.opens(first))
        #expect(closed.error(on: first) == NGHTTP2_STREAM_CLOSED)
        if first > 1 { #expect(closed.error(on: first - 2) == NGHTTP2_PROTOCOL_ERROR) }
    }
}
