import NIOCore
import Testing

@testable import HeraldGateway

@Suite
struct `unfinished request bodies` {
    private let body = [UInt8](repeating: 0x20, count: 5000)
    /// Room for what five such requests take beyond the one that is free.
    private let memory = BodyMemory(limit: 20_000)
    private let counted = 5 * 5000 - 5121

    private func begin(_ exchange: Exchange, _ streams: [UInt32]) {
        exchange.receive(streams.flatMap { RawPeer.request($0, body: body, ends: false) })
    }

    private func end(_ exchange: Exchange, _ streams: [UInt32]) {
        exchange.receive(streams.flatMap { RawFrame(RawFrame.data, flags: 1, stream: $0).bytes })
    }

    /// A connection that holds all that may be held.
    private func holder() throws -> Exchange {
        let exchange = try Exchange(bodies: memory)
        exchange.open()
        begin(exchange, [1, 3, 5, 7, 9])
        #expect(memory.current == counted)
        return exchange
    }

    @Test func `are counted over all connections until the requests end`() throws {
        let exchange = try holder()
        end(exchange, [1, 3, 5, 7, 9])
        #expect(memory.current == 0)
        #expect(exchange.requests().map(\.body) == [[UInt8]](repeating: body, count: 5))
    }

    @Test func `are released with streams that are reset, overdue, or lost with their connection`() throws {
        let exchange = try holder()
        exchange.receive([1, 3].flatMap { RawFrame(RawFrame.reset, stream: $0, RawFrame.big(8)).bytes })
        #expect(memory.current == counted - 10_000)
        #expect(exchange.session.sweep(now: exchange.now + .seconds(11)))
        _ = exchange.sent()
        #expect(exchange.session.sweep(now: exchange.now + .seconds(12)))
        #expect(memory.current == 0)

        var lost: Exchange? = try holder()
        _ = lost?.sent()
        lost = nil
        #expect(memory.current == 0)
    }

    @Test func `are dropped without memory, and their requests are marked`() throws {
        let full = try holder()
        let exchange = try Exchange(bodies: memory)
        exchange.open()
        begin(exchange, [1, 3])
        #expect(memory.current == counted)
        // What comes after is not kept either.
        exchange.receive(RawFrame(RawFrame.data, stream: 1, body).bytes)
        end(exchange, [1, 3])
        let dropped = exchange.requests()
        #expect(dropped.map(\.received.isDropped) == [true, true])
        #expect(dropped.map(\.body) == [[], []])
        for request in dropped { exchange.session.reply(to: request, .accepted) }
        _ = exchange.sent()
        end(full, [1, 3, 5, 7, 9])
        #expect(full.requests().map(\.received.isDropped) == [Bool](repeating: false, count: 5))
        // There is room again, for the same pool entries.
        begin(exchange, [5, 7])
        end(exchange, [5, 7])
        #expect(exchange.requests().map(\.body) == [body, body])
    }

    @Test func `one body per connection, and whole requests, need no reservation`() throws {
        let full = try holder()
        let exchange = try Exchange(bodies: memory)
        exchange.open()
        let whole = (1...50).flatMap { RawPeer.request(UInt32($0) * 2 + 1, body: body) }
        exchange.receive(whole + RawPeer.request(201, body: body, ends: false))
        end(exchange, [201])
        #expect(exchange.requests().map(\.body.count) == [Int](repeating: 5000, count: 51))
        #expect(memory.current == counted)
        #expect(full.session.requestCount == 5)
    }

    @Test func `are refused with 503 without memory, and the connection goes on`() async throws {
        let fixture = try await Fixture()
        fixture.configuration.unfinishedBodyBytes = 20_000
        let connected = try Connected(fixture)
        try connected.open()
        let fields = try fixture.fields()
        try connected.receive(RawPeer.request(1, fields))
        _ = try connected.sent()
        let streams = (1...6).map { UInt32($0) * 2 + 1 }
        try connected.receive(streams.flatMap { RawPeer.request($0, fields, body: body, ends: false) })
        try connected.receive(streams.flatMap { RawFrame(RawFrame.data, flags: 1, stream: $0).bytes })
        let answers = connected.peer.answers(try connected.sent())
        #expect(answers.count == 6)
        for (_, answer) in answers {
            #expect(answer.status == "503")
            #expect(answer.body.contains(#""reason":"ServiceUnavailable""#))
        }
        try connected.receive(RawPeer.request(101, fields))
        #expect(connected.peer.answers(try connected.sent())[101]?.status == "200")
    }
}
