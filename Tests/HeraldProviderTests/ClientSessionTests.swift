import NIOCore
import Testing

@testable import HeraldProvider

/// A session and the bytes of a service that is written here: frame by frame (RFC 9113 §4.1).
private final class Exchange {
    let session: ClientSession
    private(set) var sent: [UInt8] = []

    init() throws {
        session = try ClientSession()
    }

    /// Drains what the session has to say.
    /// - Returns: The types and streams of the frames, but for the preface.
    @discardableResult
    func drain() -> [(type: UInt8, stream: UInt32)] {
        var buffer = ByteBuffer()
        while session.drain(into: &buffer, upTo: 1 << 20) {}
        var bytes = Array(buffer.readableBytesView)[...]
        if sent.isEmpty { bytes = bytes.dropFirst(24) }
        sent += bytes
        var frames: [(UInt8, UInt32)] = []
        while bytes.count >= 9 {
            let head = Array(bytes.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            frames.append((head[3], head[5...8].reduce(0) { $0 << 8 | UInt32($1) }))
            bytes = bytes.dropFirst(9 + length)
        }
        return frames
    }

    func receive(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) {
        let length = payload.count
        var frame: [UInt8] = [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags]
        frame += Self.number(stream) + payload
        frame.withUnsafeBytes { session.receive($0) }
    }

    /// SETTINGS, with a stream limit or none.
    func receiveSettings(streams: UInt32?) {
        receive(4, streams.map { [0, 3] + Self.number($0) } ?? [])
    }

    func receiveGoAway(last: UInt32, _ text: String = "") {
        receive(7, Self.number(last) + Self.number(0) + Array(text.utf8))
    }

    func receive(_ type: UInt8, _ payload: [UInt8]) {
        receive(type, flags: 0, stream: 0, payload)
    }

    static func number(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
    }

    func call(_ body: String = "{}", answerLimit: Int = 1000) -> Call {
        var head = RequestHeader()
        head.add(":method", "POST")
        head.add(":scheme", "https")
        head.add(":authority", "a")
        head.add(":path", "/")
        let call = Call(
            head: head,
            body: Array(body.utf8),
            answerLimit: answerLimit,
            deadline: .distantFuture,
            waitsForService: true
        )
        call.stage = .sent
        return call
    }

    func begin(_ count: Int = 1) -> [Call] {
        (0..<count).map { _ in
            let call = call()
            #expect(session.begin(call))
            return call
        }
    }

    var ends: [ClientSession.StreamEnd] { session.takeEnded().map(\.end) }
}

@Suite struct ClientSessionTests {
    /// `:status: 200`, and `:status: 400` (RFC 7541, appendix A).
    private static let ok: UInt8 = 0x88
    private static let bad: UInt8 = 0x8C

    private let exchange: Exchange

    init() throws {
        exchange = try Exchange()
        exchange.drain()
    }

    @Test func `an answer in one frame`() {
        exchange.receiveSettings(streams: 1)
        let call = exchange.begin()[0]
        #expect(exchange.drain().filter { $0.stream == 1 }.map(\.type) == [1, 0])
        #expect(call.progress.isWhollySent)
        // apns-id as a literal without indexing (RFC 7541 §6.2.2).
        exchange.receive(1, flags: 5, stream: 1, [Self.ok, 0, 7] + Array("apns-id".utf8) + [1, UInt8(ascii: "A")])
        #expect(exchange.ends == [.answered])
        #expect(call.answer.status == 200 && call.answer.id == "A")
        #expect(exchange.session.openStreams == 0)
    }

    @Test func `an answer with a body, in pieces of one byte`() {
        exchange.receiveSettings(streams: 1)
        let call = exchange.begin()[0]
        exchange.drain()
        exchange.receive(1, flags: 4, stream: 1, [Self.bad])
        exchange.receive(0, flags: 0, stream: 1, Array(#"{"rea"#.utf8))
        exchange.receive(0, flags: 1, stream: 1, Array(#"son":"x"}"#.utf8))
        #expect(exchange.ends == [.answered])
        #expect(call.answer.status == 400)
        #expect(call.answer.body == Array(#"{"reason":"x"}"#.utf8))
    }

    @Test(arguments: [(UInt32?.none, Int(UInt32.max)), (0, 0), (1, 1), (1000, 1000)])
    func `the service's stream limit, where it says one`(told: UInt32?, limit: Int) {
        #expect(!exchange.session.hasSettings)
        exchange.receiveSettings(streams: told)
        #expect(exchange.session.hasSettings)
        // Without a word of the service, the library's number is beyond every limit of ours.
        #expect(exchange.session.streamLimit == limit || told == nil && exchange.session.streamLimit > 1_000_000)
    }

    @Test func `the stream limit as it changes`() {
        for limit in [1, 1000, 1, 0, 500] {
            exchange.receiveSettings(streams: UInt32(limit))
            #expect(exchange.session.streamLimit == limit)
        }
    }

    @Test func `GOAWAY: up to its last stream they go on, above it nobody looked`() {
        exchange.receiveSettings(streams: 100)
        let calls = exchange.begin(5)
        exchange.drain()
        exchange.receiveGoAway(last: 5, #"{"reason":"Shutdown"}"#)
        let ended = exchange.session.takeEnded()
        #expect(ended.map(\.end) == [.untouched, .untouched])
        #expect(Set(ended.map { $0.call.progress.stream }) == [7, 9])
        #expect(exchange.session.receivedGoAway?.lastStream == 5)
        #expect(exchange.session.openStreams == 3)
        exchange.receive(1, flags: 5, stream: 1, [Self.ok])
        #expect(exchange.ends == [.answered])
        #expect(calls[0].answer.status == 200)
        #expect(!exchange.session.begin(exchange.call()))
    }

    @Test func `what had not left when GOAWAY came is untouched`() {
        exchange.receiveSettings(streams: 100)
        _ = exchange.begin(3)
        exchange.receiveGoAway(last: 0)
        exchange.drain()
        #expect(exchange.ends == [.untouched, .untouched, .untouched])
        #expect(exchange.session.openStreams == 0)
    }

    @Test func `what is cancelled before it left is gone`() {
        exchange.receiveSettings(streams: 100)
        let calls = exchange.begin(2)
        exchange.session.cancel(calls[0])
        #expect(exchange.drain().filter { $0.stream > 0 }.allSatisfy { $0.stream == 3 })
        #expect(exchange.ends == [.untouched])
        #expect(exchange.session.openStreams == 1)
    }

    @Test func `two GOAWAY frames in succession`() {
        exchange.receiveSettings(streams: 100)
        _ = exchange.begin(3)
        exchange.drain()
        exchange.receiveGoAway(last: UInt32(Int32.max))
        #expect(exchange.ends.isEmpty)
        exchange.receiveGoAway(last: 1)
        #expect(exchange.ends == [.untouched, .untouched])
    }

    @Test func `a refused stream is untouched, another reset of a whole request is not`() {
        exchange.receiveSettings(streams: 100)
        _ = exchange.begin(2)
        exchange.drain()
        exchange.receive(3, stream: 1, Exchange.number(7))
        exchange.receive(3, stream: 3, Exchange.number(2))
        #expect(exchange.ends == [.untouched, .lost(2)])
    }

    @Test func `what was not written to its end is untouched, however it ends`() {
        exchange.receiveSettings(streams: 100)
        let call = exchange.call(String(repeating: "x", count: 70_000))
        #expect(exchange.session.begin(call))
        exchange.drain()
        #expect(!call.progress.isWhollySent)
        exchange.receive(3, stream: 1, Exchange.number(8))
        #expect(exchange.ends == [.untouched])
    }

    @Test func `a request that was written to its end is known by that when the connection ends`() {
        exchange.receiveSettings(streams: 100)
        let call = exchange.begin()[0]
        let waiting = exchange.session.takeCalls()
        #expect(waiting.count == 1 && !call.progress.isWhollySent)
    }

    @Test func `an answer before the request's end is one`() {
        exchange.receiveSettings(streams: 100)
        let call = exchange.call(String(repeating: "x", count: 70_000))
        #expect(exchange.session.begin(call))
        exchange.drain()
        exchange.receive(1, flags: 5, stream: 1, [Self.bad])
        exchange.receive(3, stream: 1, Exchange.number(0))
        #expect(exchange.ends == [.answered])
    }

    @Test func `a body without end is cut, and its stream reset`() {
        exchange.receiveSettings(streams: 100)
        let call = exchange.call(answerLimit: 100)
        #expect(exchange.session.begin(call))
        exchange.drain()
        exchange.receive(1, flags: 4, stream: 1, [Self.ok])
        exchange.receive(0, stream: 1, [UInt8](repeating: 0x20, count: 5000))
        #expect(call.answer.body.count == 100 && call.answer.isCut)
        #expect(exchange.drain().contains { $0.type == 3 && $0.stream == 1 })
        #expect(exchange.ends == [.lost(8)])
    }

    @Test func `a header block without end is not kept`() {
        exchange.receiveSettings(streams: 100)
        let call = exchange.begin()[0]
        exchange.drain()
        var block: [UInt8] = [Self.ok]
        for _ in 0..<300 { block += [0, 1, UInt8(ascii: "x"), 50] + [UInt8](repeating: UInt8(ascii: "y"), count: 50) }
        exchange.receive(1, flags: 5, stream: 1, block)
        exchange.drain()
        #expect(call.answer.isCut)
        #expect(exchange.ends.allSatisfy { $0 != .answered })
    }

    @Test func `a ping is answered, and one is sent`() {
        exchange.receiveSettings(streams: 1)
        exchange.drain()
        exchange.receive(6, [UInt8](repeating: 1, count: 8))
        #expect(exchange.drain().map(\.type) == [6])
        exchange.session.ping()
        #expect(exchange.drain().map(\.type) == [6])
    }

    @Test(arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\u{0}"])
    func `what is not HTTP/2 ends the session, or says nothing`(text: String) {
        Array(text.utf8).withUnsafeBytes { exchange.session.receive($0) }
        var buffer = ByteBuffer()
        _ = exchange.session.drain(into: &buffer, upTo: 1000)
        #expect(exchange.session.end != nil || !exchange.session.hasSettings)
    }

    @Test func `a random peer traps nothing`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            guard let exchange = try? Exchange() else { return }
            exchange.receiveSettings(streams: 9)
            _ = exchange.begin(3)
            exchange.drain()
            for _ in 0..<20 {
                let payload = (0..<Int.random(in: 0...40, using: &generator)).map { _ in UInt8.random(in: 0...255) }
                exchange.receive(.random(in: 0...10), flags: .random(in: 0...255), stream: .random(in: 0...7), payload)
                exchange.drain()
            }
            #expect(exchange.session.takeEnded().count + exchange.session.takeCalls().count == 3)
        }
    }
}
