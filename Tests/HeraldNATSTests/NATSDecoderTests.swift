import NIOCore
import Testing

@testable import HeraldNATS

@Suite struct NATSDecoderTests {
    private static let info =
        #"INFO {"server_id":"A","version":"2.15.1","max_payload":1048576,"headers":true}"# + " \r\n"

    /// One session with each operation that a server sends, with and without the optional fields.
    private static let session =
        info + "+OK\r\nPING\r\npong\r\n"
        + "MSG a.b 7 5\r\nhello\r\n"
        + "MSG a.b 7 answer.to 0\r\n\r\n"
        + "HMSG a 1 12 15\r\nNATS/1.0\r\n\r\nabc\r\n"
        + "HMSG a 1 r 22 22\r\nNATS/1.0 503\r\nA: b\r\n\r\n\r\n"
        + "msg \t a   18446744073709551615  2 \r\n\r\n\r\n"
        + "-ERR 'Slow Consumer'\r\n" + info

    private func decoder() -> NATSDecoder {
        NATSDecoder(lineBytes: 256, infoBytes: 1024, messageBytes: 1000)
    }

    private func read(_ pieces: [ArraySlice<UInt8>]) throws -> [ServerOperation] {
        var decoder = decoder()
        var operations: [ServerOperation] = []
        for piece in pieces {
            decoder.append(ByteBuffer(bytes: piece))
            while let operation = try decoder.next() { operations.append(operation) }
        }
        #expect(decoder.pendingBytes == 0)
        return operations
    }

    @Test func `each operation is read, with its fields`() throws {
        let operations = try read([Array(Self.session.utf8)[...]])
        #expect(operations.count == 11)
        let messages: [NATSMessage] = operations.compactMap { operation in
            if case .message(let message) = operation { message } else { nil }
        }
        #expect(messages.map(\.subject) == ["a.b", "a.b", "a", "a", "a"])
        #expect(messages.map(\.replyTo) == [nil, "answer.to", nil, "r", nil])
        #expect(messages.map { String(buffer: $0.payload) } == ["hello", "", "abc", "", "\r\n"])
        #expect(messages[3].status == NATSStatus(code: 503, description: ""))
        #expect(messages[3].headers.value("A") == "b")
        #expect(messages[3].isNoResponders)
        #expect(operations[9] == .error("Slow Consumer"))
        guard case .info(let info) = operations[0] else {
            Issue.record("no INFO")
            return
        }
        #expect(info.version == "2.15.1" && info.maximumPayload == 1_048_576 && info.hasHeaders && !info.requiresTLS)
        #expect([operations[1], operations[2], operations[3]] == [.ok, .ping, .pong])
    }

    @Test func `every split of a session reads the same`() throws {
        let bytes = Array(Self.session.utf8)
        let whole = try read([bytes[...]])
        for place in bytes.indices {
            #expect(try read([bytes[..<place], bytes[place...]]) == whole)
        }
        #expect(try read(bytes.indices.map { bytes[$0...$0] }) == whole)
    }

    @Test(
        arguments: [
            ("HELLO\r\n", NATSError.Kind.protocolViolation), ("\r\n", .protocolViolation),
            ("INFO x\r\n", .protocolViolation),
            ("INFO {}\r\n", .protocolViolation), ("MSG a 1\r\n", .protocolViolation),
            ("MSG a b 1\r\n", .protocolViolation), ("MSG a 1 -1\r\n", .protocolViolation),
            ("MSG a 1 r x 1\r\n", .protocolViolation), ("MSG a 1 99999999999999999999\r\n", .protocolViolation),
            ("MSG a 1 9999999999\r\n", .protocolViolation), ("MSG a 1 1073741824\r\n", .tooLarge),
            ("MSG a 1 1001\r\n", .tooLarge), ("HMSG a 1 5 4\r\n", .protocolViolation),
            ("HMSG a 1 12 1073741824\r\n", .tooLarge), ("MSG a 1 2\r\nabcd", .protocolViolation),
            ("HMSG a 1 4\r\nabcd\r\n", .protocolViolation), (String(repeating: "x", count: 257), .protocolViolation),
            ("PING" + String(repeating: " ", count: 300), .protocolViolation),
            ("INFO " + String(repeating: " ", count: 1100), .protocolViolation),
        ]
    )
    func `bytes that are not NATS end the reading, as soon as that is certain`(text: String, kind: NATSError.Kind) {
        var decoder = decoder()
        decoder.append(ByteBuffer(string: text))
        let error = #expect(throws: NATSError.self) { while try decoder.next() != nil {} }
        #expect(error?.kind == kind)
        decoder.append(ByteBuffer(string: "PING\r\n"))
        #expect(throws: NATSError.self) { try decoder.next() }
        #expect(decoder.pendingBytes == 0)
    }

    @Test(
        arguments: [
            ("NATS/1.0\r\n\r\n", nil, []), ("NATS/1.0 404 No Messages\r\n\r\n", 404, []),
            ("NATS/1.0\r\nA: 1\r\na:2\r\nA:  3 \r\nno colon\r\n: x\r\n\r\n", nil, ["1", "3"]),
            // The fields that a server appended to a malformed block count.
            ("NATS/2.0 503\r\nA: 1\r\n\r\n", nil, ["1"]), ("xxA: 0\r\nA: 1\r\n\r\n", nil, ["1"]),
            ("NATS/1.0\nA: 1\r\n\r\n", nil, ["1"]), ("NATS/1.0\r\nA: 1", nil, []), ("xx\r\n", nil, []),
            ("NATS/1.0 5030\r\n\r\n", nil, []), ("NATS/1.0 5\r\n\r\n", nil, []),
        ] as [(String, Int?, [String])]
    )
    func `a header block gives status and fields; a malformed one has no status`(
        block: String,
        status: Int?,
        values: [String]
    ) throws {
        let count = block.utf8.count
        let operations = try read([Array("HMSG a 2 \(count) \(count)\r\n\(block)\r\n".utf8)[...]])
        guard case .message(let message) = try #require(operations.first) else {
            Issue.record("no message")
            return
        }
        #expect(message.status?.code == status)
        #expect(message.headers.fields.filter { $0.name == "A" }.map(\.value) == values)
        #expect(message.headers.value("A") == values.first)
        #expect(message.headers.lastValue("A") == values.last)
        #expect(message.headers.number("A") == values.first.flatMap { UInt64($0) })
    }

    @Test(
        arguments: [
            ("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 7\r\nNats-TTL: 1\r\n\r\n", 7),
            ("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 0\r\n\r\n", 0), ("NATS/1.0\r\n\r\n", nil),
            // A server does not see these: what they say is not a condition.
            ("NATS/1.0\nNats-Expected-Last-Subject-Sequence: 7\r\n\r\n", nil),
            ("xx\r\nNats-Expected-Last-Subject-Sequence: 7\r\n\r\n", nil),
            ("NATS/1.0\r\nA: b\nNats-Expected-Last-Subject-Sequence: 7\r\n\r\n", nil),
            ("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 7x\r\n\r\n", nil),
            ("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: \r\n\r\n", nil),
            // It was one on another subject.
            (
                "NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 7\r\n"
                    + "Nats-Expected-Last-Subject-Sequence-Subject: b\r\n\r\n", nil
            ),
        ] as [(String, UInt64?)]
    )
    func `a condition is one that the server has checked`(block: String, condition: UInt64?) throws {
        let count = block.utf8.count
        let operations = try read([Array("HMSG a 2 \(count) \(count)\r\n\(block)\r\n".utf8)[...]])
        guard case .message(let message) = try #require(operations.first) else {
            Issue.record("no message")
            return
        }
        #expect(message.headers.expectedLastSubjectSequence == condition)
    }

    @Test func `a message is written as the protocol says`() throws {
        var headers = NATSHeaders()
        try headers.append("A", "b c")
        let payload = ByteBuffer(string: "hi")
        func written(_ publish: OutgoingPublish, _ replyTo: ReplySubject) -> String {
            var buffer = ByteBuffer()
            buffer.writePublish(publish, replyTo: replyTo)
            return String(buffer: buffer)
        }
        #expect(written(OutgoingPublish(subject: "s", payload: payload), .none) == "PUB s 2\r\nhi\r\n")
        let inbox = ReplySubject.inbox(ByteBuffer(string: "_INBOX.x."), 0xAB0)
        #expect(written(OutgoingPublish(subject: "s", payload: payload), inbox) == "PUB s _INBOX.x.ab0 2\r\nhi\r\n")
        let full = OutgoingPublish(
            subject: "s",
            payload: payload,
            headers: headers,
            expectedLastSubjectSequence: 10,
            timeToLiveSeconds: 1
        )
        let block = "NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 10\r\nNats-TTL: 1\r\nA: b c\r\n\r\n"
        #expect(
            written(full, .subject("r")) == "HPUB s r \(block.utf8.count) \(block.utf8.count + 2)\r\n\(block)hi\r\n"
        )
        for (name, value) in [("", "x"), ("a b", "x"), ("a:", "x"), ("a", "x\r\nb: c"), ("a", "\n")] {
            #expect(throws: NATSError.self) { try headers.append(name, value) }
        }
        #expect(headers.fields.count == 1)
    }

    @Test func `subjects are tokens between dots; wildcards are for subscriptions`() {
        for subject in ["a", "a.b", "$JS.API.X", "a*b", "a.>x", "ä"] {
            #expect(SubjectRules.isSubject(subject) && SubjectRules.isFilter(subject))
        }
        for filter in ["*", ">", "a.*", "a.*.b", "a.>"] {
            #expect(!SubjectRules.isSubject(filter) && SubjectRules.isFilter(filter))
        }
        for text in [
            "", ".", "a.", ".a", "a..b", "a b", "a\r\nPUB b", ">.a", "a\t", String(repeating: "a", count: 1025),
        ] {
            #expect(!SubjectRules.isSubject(text) && !SubjectRules.isFilter(text))
        }
        #expect(SubjectRules.isToken("HERALD_BOX_0"))
        for text in ["a.b", "*", "a>", "a/b", ""] { #expect(!SubjectRules.isToken(text)) }
    }
}
