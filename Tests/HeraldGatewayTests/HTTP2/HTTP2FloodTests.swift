import NIOCore
import Testing

@testable import HeraldGateway

/// Attacks of a client, and how soon Herald ends them.
@Suite
struct `a flood ends the session` {
    /// Feeds `frame` again and again, and reads what comes back.
    /// - Returns: How often it went well.
    private func flood(
        _ exchange: Exchange,
        _ limit: Int = 20_000,
        reads: Bool = true,
        _ frame: (Int) -> [UInt8]
    ) -> Int {
        for index in 0..<limit {
            if exchange.receive(frame(index)) != nil { return index }
            if reads {
                _ = exchange.requests().map { exchange.session.reply(to: $0, .accepted) }
                _ = exchange.sent()
            }
            if exchange.session.end != nil || exchange.session.isOver { return index }
        }
        return limit
    }

    private func stream(_ index: Int) -> UInt32 { UInt32(index) * 2 + 1 }

    @Test func `of frames that are not requests`() throws {
        let frames: [(String, RawFrame)] = [
            ("PING", RawFrame(RawFrame.ping, [UInt8](repeating: 1, count: 8))),
            ("PING acknowledgement", RawFrame(RawFrame.ping, flags: 1, [UInt8](repeating: 1, count: 8))),
            ("SETTINGS", RawFrame(RawFrame.settings)),
            ("WINDOW_UPDATE", RawFrame(RawFrame.windowUpdate, RawFrame.big(1))),
            ("PRIORITY", RawFrame(RawFrame.priority, stream: 1, [0, 0, 0, 0, 1])),
            ("PRIORITY_UPDATE", RawFrame(0x10, [0, 0, 0, 1, 0x75])),
            ("unknown", RawFrame(0xFA, stream: 1, [1, 2, 3])),
        ]
        for (name, frame) in frames {
            let exchange = try Exchange()
            exchange.open()
            let count = flood(exchange) { _ in frame.bytes }
            #expect(count < 1010, "\(name)")
            #expect(exchange.session.end == .controlFlood, "\(name)")
        }
    }

    @Test func `of empty DATA`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1, ends: false))
        #expect(flood(exchange) { _ in RawFrame(RawFrame.data, stream: 1).bytes } < 1010)
        #expect(exchange.session.end == .controlFlood)
    }

    @Test func `of empty DATA on a stream that Herald has reset`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        exchange.receive(RawPeer.request(1, ends: false) + RawPeer.request(3, ends: false))
        #expect(flood(exchange) { _ in RawFrame(RawFrame.data, stream: 3).bytes } < 1010)
        #expect(exchange.session.end == .controlFlood)
    }

    @Test func `but not of one ping a second, for hours`() throws {
        let exchange = try Exchange()
        exchange.open()
        let count = flood(exchange) { _ in
            exchange.now = exchange.now + .seconds(1)
            return RawFrame(RawFrame.ping, [UInt8](repeating: 1, count: 8)).bytes
        }
        #expect(count == 20_000)
    }

    @Test func `but not of window updates that requests have paid for`() throws {
        let exchange = try Exchange()
        exchange.open()
        let count = flood(exchange) { index in
            RawPeer.request(stream(index)) + RawFrame(RawFrame.windowUpdate, RawFrame.big(30)).bytes
        }
        #expect(count == 20_000)
    }

    @Test func `of streams that the client resets`() throws {
        let exchange = try Exchange()
        exchange.open()
        let count = flood(exchange) { index in
            RawPeer.request(stream(index)) + RawFrame(RawFrame.reset, stream: stream(index), RawFrame.big(8)).bytes
        }
        #expect(count == 1000)
        #expect(exchange.session.end == .resetFlood)
    }

    @Test func `but not of a hundred resets a second, for minutes`() throws {
        let exchange = try Exchange()
        exchange.open()
        let count = flood(exchange) { index in
            exchange.now = exchange.now + .milliseconds(10)
            return RawPeer.request(stream(index))
                + RawFrame(RawFrame.reset, stream: stream(index), RawFrame.big(8)).bytes
        }
        #expect(count == 20_000)
    }

    @Test func `of streams that the client makes us reset`() throws {
        let exchange = try Exchange()
        exchange.open()
        // A window that overflows is an error of the stream (CVE-2025-8671).
        let overflow = RawFrame.big(0x7FFF_FFFF)
        let count = flood(exchange) { index in
            RawPeer.request(stream(index), ends: false)
                + RawFrame(RawFrame.windowUpdate, stream: stream(index), overflow).bytes
        }
        #expect(count < 210)
        #expect(exchange.session.end == .resetFlood)
    }

    @Test func `of malformed requests`() throws {
        let exchange = try Exchange()
        exchange.open()
        let count = flood(exchange) { index in RawPeer.request(stream(index), [(":method", "POST")]) }
        #expect(count < 210)
    }

    @Test func `of refused streams`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        exchange.receive(RawPeer.request(1, ends: false))
        #expect(flood(exchange) { RawPeer.request(stream($0 + 1)) } < 210)
        #expect(exchange.session.end == .resetFlood)
    }

    @Test func `of work whose streams were reset`() throws {
        let exchange = try Exchange { $0.resetsReceived = 100_000 }
        exchange.open()
        var refused = 0
        for index in 0..<2100 {
            exchange.receive(
                RawPeer.request(stream(index)) + RawFrame(RawFrame.reset, stream: stream(index), RawFrame.big(8)).bytes
            )
            #expect(exchange.requests().isEmpty)
            refused += exchange.sent().count { $0.errorCode == 7 }
        }
        // A request that is reset in its own burst cost no work.
        #expect(refused == 0)
        for index in 2100..<4200 {
            exchange.receive(RawPeer.request(stream(index)))
            _ = exchange.requests()
            exchange.receive(RawFrame(RawFrame.reset, stream: stream(index), RawFrame.big(8)).bytes)
            refused += exchange.sent().count { $0.errorCode == 7 }
        }
        #expect(refused == 100)
        #expect(exchange.session.requestCount == 2000)
    }

    @Test func `by a header block of references to the table`() throws {
        let exchange = try Exchange()
        exchange.open()
        // One literal with indexing (RFC 7541 §6.2.1), then references to it, a byte each.
        let bomb =
            RawPeer.block(RawPeer.fields()) + [0x40] + RawPeer.literal(Array("bomb".utf8))
            + RawPeer.literal([UInt8](repeating: 97, count: 3000)) + [UInt8](repeating: 0x80 | 62, count: 4000)
        #expect(exchange.receive(RawFrame(RawFrame.headers, flags: 5, stream: 1, bomb).bytes) == .headerBlockTooLarge)
    }

    @Test func `by header blocks that belong to no request`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        // Blocks on a stream that Herald has reset are decoded and ignored.
        exchange.receive(RawPeer.request(1, ends: false) + RawPeer.request(3))
        _ = exchange.sent()
        let table = [0x40] + RawPeer.literal(Array("bomb".utf8)) + RawPeer.literal([UInt8](repeating: 97, count: 3000))
        let bomb = RawPeer.block(RawPeer.fields()) + table + [UInt8](repeating: 0x80 | 62, count: 12_000)
        let count = flood(exchange) { _ in RawFrame(RawFrame.headers, flags: 5, stream: 3, bomb).bytes }
        #expect(count < 5)
        #expect(exchange.session.end == .controlFlood)
    }

    @Test func `by a large header block of a stream that is refused`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        exchange.receive(RawPeer.request(1, ends: false))
        let large = RawPeer.block(RawPeer.fields([("x-large", String(repeating: "a", count: 16_000))]))
        #expect(exchange.receive(RawFrame(RawFrame.headers, flags: 5, stream: 3, large).bytes) == .headerBlockTooLarge)
    }

    @Test func `by a header block of more than sixteen thousand bytes, meaningless ones too`() throws {
        let exchange = try Exchange()
        exchange.open()
        let fields = RawPeer.fields((0..<4).map { ("x-\($0)", String(repeating: "a", count: 4000)) })
        #expect(exchange.receive(RawPeer.request(1, fields)) == .headerBlockTooLarge)
    }

    @Test func `by a header block in too many frames`() throws {
        let exchange = try Exchange()
        exchange.open()
        let block = RawPeer.block(RawPeer.fields())
        exchange.receive(RawFrame(RawFrame.headers, stream: 1, Array(block[..<1])).bytes)
        let count = flood(exchange) { RawFrame(RawFrame.continuation, stream: 1, [block[$0 + 1]]).bytes }
        #expect(count <= 4)
    }

    @Test func `by one who does not read the acknowledgements that it asks for`() throws {
        let exchange = try Exchange { $0.controlFrames = 100_000 }
        exchange.open()
        let ping = RawFrame(RawFrame.ping, [UInt8](repeating: 1, count: 8)).bytes
        #expect(flood(exchange, reads: false) { _ in ping } < 200)
    }

    @Test func `by bytes that are not HTTP/2`() throws {
        let starts: [[UInt8]] = [
            Array("POST /3/device/00 HTTP/1.1\r\nHost: a\r\n\r\n".utf8),
            Array("GET / HTTP/1.1\r\n\r\n".utf8),
            [UInt8](repeating: 0, count: 64),
        ]
        for start in starts {
            let exchange = try Exchange()
            #expect(exchange.receive(start) == .notHTTP2)
        }
    }

    @Test func `by frames that HTTP/2 forbids, without a trap`() throws {
        let frames: [RawFrame] = [
            RawFrame(RawFrame.data, stream: 0, [1]), RawFrame(RawFrame.data, stream: 2, [1]),
            RawFrame(RawFrame.headers, flags: 4, stream: 2, []),
            RawFrame(RawFrame.headers, flags: 0x0C, stream: 1, [200]),
            RawFrame(RawFrame.headers, flags: 4, stream: 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            RawFrame(RawFrame.continuation, flags: 4, stream: 1, [0x82]), RawFrame(RawFrame.settings, [1, 2, 3]),
            RawFrame(RawFrame.settings, [0, 4, 0xFF, 0xFF, 0xFF, 0xFF]), RawFrame(RawFrame.ping, [1]),
            RawFrame(RawFrame.windowUpdate, RawFrame.big(0)), RawFrame(RawFrame.reset, stream: 1, RawFrame.big(0)),
            RawFrame(5, flags: 4, stream: 1, RawFrame.big(2)), RawFrame(RawFrame.goAway, [1]),
            RawFrame(RawFrame.settings, flags: 1, [0, 0, 0, 0, 0, 0]), RawFrame(RawFrame.settings, flags: 1),
        ]
        for frame in frames {
            let exchange = try Exchange()
            exchange.open()
            exchange.receive(frame.bytes)
            _ = exchange.sent()
            let hasEnded = exchange.session.end != nil || exchange.session.isOver
            #expect(hasEnded, "\(frame)")
        }
    }

    @Test func `by random bytes after a good start, without a trap`() throws {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        func random() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
        let honest = RawPeer.request(1) + RawPeer.request(3) + RawPeer.settingsAcknowledgement + RawPeer.request(5)
        for _ in 0..<3000 {
            let exchange = try Exchange()
            exchange.receive(RawPeer.opening)
            var bytes = honest
            for _ in 0..<(1 + random() % 6) {
                bytes[Int(random() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random())
            }
            exchange.receive(bytes)
            _ = exchange.requests().map { exchange.session.reply(to: $0, .accepted) }
            _ = exchange.sent()
            _ = exchange.session.sweep(now: exchange.now + .seconds(60))
        }
    }
}
