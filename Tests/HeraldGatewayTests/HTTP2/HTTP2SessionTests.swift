import NIOCore
import Testing

@testable import HeraldGateway

/// A session and a client of bare frames, with nothing between them but bytes.
final class Exchange {
    let peer = RawPeer()
    let session: HTTP2Session
    var now = NIODeadline.uptimeNanoseconds(1_000_000_000)

    init(
        streams: Int = 1000,
        bodies: BodyMemory = BodyMemory(limit: 1 << 20),
        _ change: (inout HTTP2Limits) -> Void = { _ in }
    ) throws {
        var limits = HTTP2Limits()
        change(&limits)
        session = try HTTP2Session(limits: limits, streams: streams, bodies: bodies, now: now)
    }

    @discardableResult
    func receive(_ bytes: [UInt8]) -> SessionEnd? {
        let end = bytes.withUnsafeBytes { session.receive($0, now: now) }
        session.consume()
        return end
    }

    func sent() -> [RawFrame] {
        var buffer = ByteBuffer()
        while session.drain(into: &buffer, upTo: .max) {}
        return peer.frames(buffer.readableBytesView)
    }

    /// Opens the connection as an honest client, and acknowledges the server's SETTINGS.
    func open() {
        receive(RawPeer.opening)
        _ = sent()
        receive(RawPeer.settingsAcknowledgement)
    }

    func requests() -> [PendingRequest] {
        var requests: [PendingRequest] = []
        while let request = session.nextRequest() {
            requests.append(request)
            session.keepPosted(request)
        }
        return requests
    }

    func text(_ request: PendingRequest, _ field: RequestField) -> String? {
        request.fields.withValue(of: field) { String(decoding: $0, as: UTF8.self) }
    }

    /// The settings of a SETTINGS frame, by identifier.
    static func settings(_ frame: RawFrame?) -> [UInt32: UInt32] {
        guard let payload = frame?.payload else { return [:] }
        var settings: [UInt32: UInt32] = [:]
        for start in stride(from: 0, to: payload.count, by: 6) {
            let id = UInt32(payload[start]) << 8 | UInt32(payload[start + 1])
            settings[id] = RawFrame.number(payload[(start + 2)...])
        }
        return settings
    }
}

@Suite
struct `an HTTP/2 session` {
    @Test func `sends the SETTINGS of APNs`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.receive(RawPeer.opening)
        let frames = exchange.sent()
        let settings = Exchange.settings(frames.first { $0.type == RawFrame.settings && !$0.isAcknowledgement })
        #expect(settings == [1: 4096, 3: 1, 4: 65_535, 5: 16_384, 6: 8000, 9: 1])
        #expect(frames.contains { $0.type == RawFrame.settings && $0.isAcknowledgement })
        let window = try #require(frames.first { $0.type == RawFrame.windowUpdate })
        #expect(RawFrame.number(window.payload[...]) == 16 * 1024 * 1024 - 65_535)
    }

    @Test func `returns a request with its fields and its body`() throws {
        let exchange = try Exchange()
        exchange.open()
        let fields = RawPeer.fields([("apns-id", "F4121B12-E0BF-3266-F079-D9253E98BF49"), ("accept", "*/*")])
        #expect(exchange.receive(RawPeer.request(1, fields, body: Array("body".utf8))) == nil)
        let request = try #require(exchange.requests().first)
        #expect(exchange.text(request, .method) == "POST")
        #expect(exchange.text(request, .path) == "/3/device/" + String(repeating: "ab", count: 32))
        #expect(exchange.text(request, .apnsID) == "F4121B12-E0BF-3266-F079-D9253E98BF49")
        #expect(exchange.text(request, .authorization) == nil)
        #expect(request.body == Array("body".utf8))
        #expect(request.isEnded)
    }

    @Test func `accepts bytes one by one`() throws {
        let exchange = try Exchange()
        exchange.open()
        for byte in RawPeer.request(1, body: Array("body".utf8)) { #expect(exchange.receive([byte]) == nil) }
        #expect(exchange.requests().map(\.body) == [Array("body".utf8)])
    }

    @Test func `accepts a header block in several frames, and trailers`() throws {
        let exchange = try Exchange()
        exchange.open()
        let block = RawPeer.block(RawPeer.fields())
        exchange.receive(RawFrame(RawFrame.headers, stream: 1, Array(block[..<30])).bytes)
        exchange.receive(RawFrame(RawFrame.continuation, flags: 4, stream: 1, Array(block[30...])).bytes)
        exchange.receive(RawFrame(RawFrame.data, stream: 1, Array("body".utf8)).bytes)
        #expect(exchange.requests().isEmpty)
        let trailers = RawPeer.block([("apns-id", "not a header of the request")])
        exchange.receive(RawFrame(RawFrame.headers, flags: 5, stream: 1, trailers).bytes)
        let request = try #require(exchange.requests().first)
        #expect(exchange.text(request, .apnsTopic) == "com.example.app")
        #expect(exchange.text(request, .apnsID) == nil)
        #expect(!request.fields.hasDuplicates)
    }

    @Test func `accepts host instead of authority, and refuses a request with neither`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1, RawPeer.fields([(":authority", nil), ("host", "herald.example")])))
        #expect(exchange.requests().count == 1)
        exchange.receive(RawPeer.request(3, RawPeer.fields([(":authority", nil)])))
        #expect(exchange.requests().isEmpty)
        #expect(exchange.sent().contains { $0.streamID == 3 && $0.errorCode == 1 })
    }

    @Test func `keeps a field with a forbidden value and marks it`() throws {
        let exchange = try Exchange()
        exchange.open()
        let fields = RawPeer.fields([("apns-priority", " 10"), ("apns-collapse-id", "a\u{1}b"), ("x-other", "\u{1}")])
        exchange.receive(RawPeer.request(1, fields))
        let request = try #require(exchange.requests().first)
        #expect(request.fields.isMalformed(.apnsPriority))
        #expect(request.fields.isMalformed(.apnsCollapseID))
        #expect(!request.fields.isMalformed(.apnsTopic))
    }

    @Test func `resets a request with a forbidden field that has no reason, and decodes the rest of its block`() throws
    {
        let fields = [
            ("x-other", "a\0b"), ("x-other", "a\rb"), ("x-other", "a\nb"), ("x-other", " a"), ("x-other", "a\t"),
            ("x other", "a"), ("x:other", "a"), ("x-\u{7F}", "a"), ("", "a"), ("host", "a\0"),
        ]
        for field in fields {
            let exchange = try Exchange()
            exchange.open()
            // RFC 7541 §6.2.1: a field that the table gets, although the request is malformed.
            let indexed = [0x40] + RawPeer.literal(Array("apns-id".utf8)) + RawPeer.literal(Array("id".utf8))
            let block = RawPeer.block(RawPeer.fields() + [field]) + indexed
            exchange.receive(RawFrame(RawFrame.headers, flags: 5, stream: 1, block).bytes)
            #expect(exchange.sent().map(\.errorCode) == [1], "\(field)")
            let next = RawPeer.block(RawPeer.fields()) + [0x80 | 62]
            exchange.receive(RawFrame(RawFrame.headers, flags: 5, stream: 3, next).bytes)
            #expect(exchange.requests().map { exchange.text($0, .apnsID) } == ["id"], "\(field)")
        }
    }

    @Test func `a malformed request leaves no deadline behind`() throws {
        let exchange = try Exchange()
        exchange.open()
        let request = RawPeer.request(1, RawPeer.fields([("Upper", "a")]))
        for byte in request { exchange.receive([byte]) }
        #expect(exchange.sent().map(\.errorCode) == [1])
        exchange.now = exchange.now + .seconds(60)
        #expect(exchange.session.sweep(now: exchange.now))
    }

    @Test func `answers with a header alone, or with one frame of body`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1) + RawPeer.request(3))
        let requests = exchange.requests()
        requests[0].answer.id = "F4121B12-E0BF-3266-F079-D9253E98BF49".utf8.withContiguousStorageIfAvailable {
            IdentifierText(copying: UnsafeRawBufferPointer($0))
        }.flatMap { $0 }
        exchange.session.reply(to: requests[0], .accepted)
        exchange.session.reply(
            to: requests[1],
            Reply(status: ReplyStatus(rawValue: 410), body: Array("{}".utf8), retryAfter: Array("9".utf8))
        )
        let answers = exchange.peer.answers(exchange.sent())
        #expect(
            answers[1]
                == Answer(
                    fields: [":status": "200", "apns-id": "F4121B12-E0BF-3266-F079-D9253E98BF49"],
                    body: "",
                    frames: 1,
                    isEnded: true
                )
        )
        let fields = [":status": "410", "content-type": "application/json", "retry-after": "9"]
        #expect(answers[3] == Answer(fields: fields, body: "{}", frames: 2, isEnded: true))
        #expect(exchange.session.requestCount == 0)
    }

    @Test func `widens the connection's window, never a stream's`() throws {
        let exchange = try Exchange { $0.connectionWindowBytes = 65_535 }
        exchange.open()
        for stream in stride(from: UInt32(1), to: 41, by: 2) {
            exchange.receive(RawPeer.request(stream, body: [UInt8](repeating: 32, count: 5000)))
        }
        let updates = exchange.sent().filter { $0.type == RawFrame.windowUpdate }
        #expect(!updates.isEmpty)
        #expect(updates.allSatisfy { $0.streamID == 0 })
    }

    @Test func `serves streams that were opened before the client knew the limit`() throws {
        let exchange = try Exchange(streams: 1)
        var burst = RawPeer.opening
        for stream in stride(from: UInt32(1), to: 101, by: 2) { burst += RawPeer.request(stream) }
        #expect(exchange.receive(burst) == nil)
        #expect(exchange.requests().count == 50)
        #expect(!exchange.sent().contains { $0.type == RawFrame.reset || $0.type == RawFrame.goAway })
    }

    @Test func `refuses a stream over the limit once the client knows it, and no earlier`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        exchange.receive(RawPeer.request(1) + RawPeer.request(3))
        #expect(exchange.requests().count == 1)
        #expect(exchange.sent().filter { $0.errorCode == 7 }.map(\.streamID) == [3])

        exchange.session.announce(streams: 1000)
        exchange.receive(RawPeer.request(5) + RawPeer.request(7))
        #expect(exchange.requests().count == 2)
        let settings = exchange.sent().filter { $0.type == RawFrame.settings }
        #expect(settings.map(Exchange.settings) == [[3: 1000]])
        exchange.receive(RawPeer.settingsAcknowledgement)
        exchange.receive(RawPeer.request(9))
        #expect(exchange.requests().count == 1)
    }

    @Test func `never admits more streams than the maximum, whatever is announced`() throws {
        let exchange = try Exchange { $0.concurrentStreams = 10 }
        var burst = RawPeer.opening
        for stream in stride(from: UInt32(1), to: 31, by: 2) { burst += RawPeer.request(stream) }
        #expect(exchange.receive(burst) == nil)
        #expect(exchange.requests().count == 10)
        #expect(exchange.sent().filter { $0.errorCode == 7 }.count == 5)
    }

    @Test func `refuses a stream beyond the limit with one reset`() throws {
        let exchange = try Exchange(streams: 1)
        exchange.open()
        exchange.receive(RawPeer.request(1) + RawPeer.request(3))
        let resets = exchange.sent().filter { $0.type == RawFrame.reset }
        #expect(resets.map(\.streamID) == [3] && resets.map(\.errorCode) == [7])
        #expect(exchange.requests().count == 1)
    }

    @Test func `answers a body that is far too long, then resets the stream with NO_ERROR`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1, body: [UInt8](repeating: 32, count: 65_535), ends: false))
        let request = try #require(exchange.requests().first)
        #expect(request.body.count == 5121)
        exchange.session.reply(to: request, Reply(status: ReplyStatus(rawValue: 413), body: Array("{}".utf8)))
        let frames = exchange.sent()
        #expect(exchange.peer.answers(frames)[1]?.status == "413")
        #expect(frames.last?.errorCode == 0)
        #expect(exchange.session.requestCount == 0)
    }

    @Test func `reads a slightly too long body to its end, and resets nothing`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1, body: [UInt8](repeating: 32, count: 60_000)))
        let request = try #require(exchange.requests().first)
        #expect(request.received.byteCount == 60_000)
        exchange.session.reply(to: request, Reply(status: ReplyStatus(rawValue: 413), body: Array("{}".utf8)))
        let frames = exchange.sent()
        #expect(exchange.peer.answers(frames)[1]?.isEnded == true)
        #expect(!frames.contains { $0.type == RawFrame.reset })
    }

    @Test func `an answer for a stream that was reset goes nowhere and frees its request`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1))
        let request = try #require(exchange.requests().first)
        let number = request.number
        exchange.receive(RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes)
        #expect(exchange.session.requestCount == 1)
        let found = try #require(exchange.session.request(number))
        exchange.session.reply(to: found, .accepted)
        #expect(exchange.session.requestCount == 0)
        #expect(exchange.session.request(number) == nil)
        #expect(exchange.peer.answers(exchange.sent()).isEmpty)
    }

    @Test func `a request that is never answered is released when the client resets it`() throws {
        let exchange = try Exchange { $0.requestsInHand = 1 }
        exchange.open()
        exchange.receive(RawPeer.request(1))
        exchange.session.leaveUnanswered(try #require(exchange.requests().first))
        #expect(exchange.session.requestCount == 0)
        exchange.receive(RawPeer.request(3))
        #expect(exchange.requests().isEmpty)
        exchange.receive(RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes)
        exchange.receive(RawPeer.request(5))
        #expect(exchange.requests().count == 1)
    }

    @Test func `a request with an unknown outcome has its stream reset, and its memory is free`() throws {
        let exchange = try Exchange { $0.requestsInHand = 1 }
        exchange.open()
        exchange.receive(RawPeer.request(1))
        exchange.session.leaveUnanswered(try #require(exchange.requests().first), reset: .internalError)
        let resets = exchange.sent().filter { $0.type == RawFrame.reset }
        #expect(resets.map(\.errorCode) == [2], "INTERNAL_ERROR: nobody knows what happened")
        exchange.receive(RawPeer.request(3))
        #expect(exchange.requests().count == 1)
    }

    @Test func `a completion for an earlier request does not answer the request's next`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1))
        let request = try #require(exchange.requests().first)
        let number = request.number
        exchange.session.reply(to: request, .accepted)
        _ = exchange.sent()
        exchange.receive(RawPeer.request(3))
        #expect(exchange.requests().first === request)
        #expect(exchange.session.request(number) == nil)
    }

    @Test func `a request that is reset in its own burst is not processed`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1) + RawFrame(RawFrame.reset, stream: 1, RawFrame.big(8)).bytes)
        #expect(exchange.requests().isEmpty)
        #expect(exchange.session.requestCount == 0)
    }

    @Test func `sends GOAWAY with the reason, answers pending requests, and accepts no more`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1))
        let request = try #require(exchange.requests().first)
        exchange.session.goAway(Array(#"{"reason":"Shutdown"}"#.utf8))
        let goAway = try #require(exchange.sent().first { $0.type == RawFrame.goAway })
        #expect(RawFrame.number(goAway.payload[...]) == 1)
        #expect(RawFrame.number(goAway.payload[4...]) == 0)
        #expect(String(decoding: goAway.payload[8...], as: UTF8.self) == #"{"reason":"Shutdown"}"#)
        exchange.receive(RawPeer.request(3))
        #expect(exchange.requests().isEmpty)
        #expect(!exchange.session.isOver)
        exchange.session.reply(to: request, .accepted)
        #expect(exchange.peer.answers(exchange.sent())[1]?.status == "200")
        #expect(exchange.session.isOver)
    }

    @Test func `resets a body that takes too long, and an answer that is not read`() throws {
        let exchange = try Exchange()
        // No window: the client takes no body.
        exchange.receive(RawPeer.preface + RawFrame(RawFrame.settings, [0, 4, 0, 0, 0, 0]).bytes)
        exchange.receive(RawPeer.request(1, ends: false) + RawPeer.request(3))
        let request = try #require(exchange.requests().first)
        exchange.session.reply(to: request, Reply(status: ReplyStatus(rawValue: 410), body: Array("{}".utf8)))
        _ = exchange.sent()
        exchange.now = exchange.now + .seconds(11)
        #expect(exchange.session.sweep(now: exchange.now))
        #expect(exchange.sent().map { [$0.streamID, $0.errorCode] } == [[1, 8]])
        exchange.now = exchange.now + .seconds(20)
        #expect(exchange.session.sweep(now: exchange.now))
        #expect(exchange.sent().map { [$0.streamID, $0.errorCode] } == [[3, 8]])
        #expect(exchange.session.requestCount == 0)
    }

    @Test func `a posted request has no deadline`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawPeer.request(1))
        _ = exchange.requests()
        exchange.now = exchange.now + .hours(1)
        #expect(exchange.session.sweep(now: exchange.now))
        #expect(exchange.sent().allSatisfy { $0.type != RawFrame.reset })
    }

    @Test func `detects a header block that does not end`() throws {
        let exchange = try Exchange()
        exchange.open()
        exchange.receive(RawFrame(RawFrame.headers, stream: 1, Array(RawPeer.block(RawPeer.fields())[..<30])).bytes)
        exchange.now = exchange.now + .seconds(9)
        #expect(exchange.session.sweep(now: exchange.now))
        exchange.now = exchange.now + .seconds(2)
        #expect(!exchange.session.sweep(now: exchange.now))
    }
}
