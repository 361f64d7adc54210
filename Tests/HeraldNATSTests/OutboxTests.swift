import NIOCore
import Synchronization
import Testing

@testable import HeraldNATS

/// The outcomes of a publish, and what is kept for them: decided without socket and clock.
@Suite struct OutboxTests {
    private final class Outcomes: Sendable {
        private let state = Mutex<[String: [PublishOutcome]]>([:])

        func request(_ name: String) -> Request {
            .publish { outcome in self.state.withLock { $0[name, default: []].append(outcome) } }
        }

        subscript(name: String) -> [PublishOutcome] { state.withLock { $0[name] ?? [] } }
    }

    private let outcomes = Outcomes()

    private func outbox(_ change: (inout NATSLimits) -> Void = { _ in }) throws -> Outbox {
        var limits = NATSLimits()
        change(&limits)
        var outbox = Outbox(limits: limits, inbox: "_INBOX.me")
        outbox.connect(try info())
        let hello = write(&outbox)
        #expect(hello == "SUB _INBOX.me.* 1\r\n")
        return outbox
    }

    private func info(maximumPayload: Int = 100) throws -> NATSServerInfo {
        let json = #"{"server_id":"A","version":"2.15.1","max_payload":\#(maximumPayload),"headers":true}"#
        return try #require(NATSServerInfo(json: json.utf8))
    }

    /// The text of the next write, which the socket takes at once if `isTaken`.
    private func write(_ outbox: inout Outbox, isTaken: Bool = true) -> String? {
        guard let write = outbox.takeWrite() else { return nil }
        if isTaken { outbox.wrote(write) }
        return String(buffer: write)
    }

    private func add(_ outbox: inout Outbox, _ name: String, payload: Int = 1, deadline: UInt64 = 1_000_000_000) {
        let publish = OutgoingPublish(subject: name, payload: ByteBuffer(repeating: 0x78, count: payload))
        outbox.add(publish, outcomes.request(name), now: 0, deadline: deadline)
    }

    /// Reports what ended.
    private func report(_ ended: [EndedRequest]) {
        for each in ended { each.report() }
    }

    private func answer(_ outbox: inout Outbox, _ subject: String, _ payload: String, status: Int? = nil) -> Int {
        let message = NATSMessage(
            subscription: 1,
            subjectBytes: ByteBuffer(string: subject),
            replyToBytes: nil,
            status: status.map { NATSStatus(code: $0, description: "") },
            headers: NATSHeaders(),
            payload: ByteBuffer(string: payload)
        )
        let found = outbox.requests(for: [message]).compactMap { $0 }
        for each in found { _ = each.request.answer(message) }
        return found.count
    }

    @Test
    func `a write that the socket has makes the outcome unknown when the connection ends; another one was not sent`()
        throws
    {
        var outbox = try outbox()
        add(&outbox, "written")
        let first = write(&outbox, isTaken: false)
        #expect(first == "PUB written _INBOX.me.0 1\r\nx\r\n")
        add(&outbox, "unwritten")
        // The socket has not taken the former write: the next one waits.
        let second = write(&outbox)
        #expect(second == nil)
        report(outbox.disconnect(NATSError(.connectionLost, "gone")))
        #expect(outcomes["written"] == [.unknown(NATSError(.connectionLost, "gone"))])
        #expect(outcomes["unwritten"] == [.notSent(NATSError(.notConnected, "gone"))])
        // Nothing of it is written to the next server.
        outbox.connect(try info())
        let hello = write(&outbox)
        #expect(hello == "SUB _INBOX.me.* 1\r\n")
    }

    @Test func `an answer ends its request once; another slot, another use or another text finds none`() throws {
        var outbox = try outbox()
        add(&outbox, "a")
        for subject in [
            "_INBOX.me.1", "_INBOX.me.100000000", "_INBOX.me.00", "_INBOX.me.x", "_INBOX.me.", "_INBOX", "",
        ] {
            let found1 = answer(&outbox, subject, #"{"stream":"S","seq":9}"#)
            #expect(found1 == 0)
        }
        let found2 = answer(&outbox, "_INBOX.me.0", #"{"stream":"S","seq":7}"#)
        #expect(found2 == 1)
        let found3 = answer(&outbox, "_INBOX.me.0", #"{"stream":"S","seq":8}"#)
        #expect(found3 == 0)
        #expect(outcomes["a"] == [.stored(sequence: 7)])
        add(&outbox, "b")
        // The slot is used again under another token.
        let found4 = answer(&outbox, "_INBOX.me.0", #"{"stream":"S","seq":8}"#)
        #expect(found4 == 0)
        #expect(outcomes["b"].isEmpty)
        let found5 = answer(&outbox, "_INBOX.me.100000000", #"{"stream":"S","seq":10}"#)
        #expect(found5 == 1)
        #expect(outcomes["b"] == [.stored(sequence: 10)])
        #expect(outbox.statistics.lateAnswers == 9)
    }

    @Test(
        arguments: [
            ("", 503, PublishOutcome.notSent(.noResponders)),
            (
                #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 42"},"stream":"S","seq":0}"#,
                nil,
                .refused(JetStreamRefusal(status: 400, code: 10_071, description: "wrong last sequence: 42"))
            ),
            ("garbage", nil, .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))),
            (
                #"{"stream":"S","seq":0}"#, nil,
                .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))
            ),
            (#"{"stream":"S"}"#, nil, .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))),
            (#"{"seq":5}"#, nil, .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))),
            (
                #"{"stream":"S","seq":5.5}"#, nil,
                .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))
            ),
            (#"{ "seq" : 5 , "duplicate":true,"stream":"S" } "#, nil, .stored(sequence: 5)),
            (#"{"stream":"\u0053","seq":18446744073709551615,"x":{"y":[1]}}"#, nil, .stored(sequence: .max)),
        ] as [(String, Int?, PublishOutcome)]
    )
    func `an answer that cannot be read leaves the outcome unknown`(
        answered: String,
        status: Int?,
        outcome: PublishOutcome
    ) throws {
        var outbox = try outbox()
        add(&outbox, "a")
        let found6 = answer(&outbox, "_INBOX.me.0", answered, status: status)
        #expect(found6 == 1)
        #expect(outcomes["a"] == [outcome])
    }

    @Test(
        arguments: [
            (#"{"stream":"S","seq":7}"#, true),
            (
                #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 42"},"stream":"S","seq":0}"#,
                true
            ),
            // One of these could mean two things; the decoder of JSON decides.
            (#"{"error":{"code":400,"err_code":10071},"stream":"S","seq":0}"#, false),
            (#"{"error":{"code":400,"code":500,"err_code":1,"description":""},"stream":"S","seq":0}"#, false),
            (#"{"error":{"code":400,"err_code":1,"description":"\""},"stream":"S","seq":0}"#, false),
            (#"{"error":null,"stream":"S","seq":7}"#, false),
        ]
    )
    func `ordinary answers need no decoder of JSON`(text: String, isOrdinary: Bool) {
        let bytes = Array(text.utf8)
        #expect((bytes.withUnsafeBytes(PublishAnswer.scan) != nil) == isOrdinary)
    }

    @Test func `the sequence of a refused condition is read from the words`() {
        func last(_ code: Int, _ words: String) -> UInt64? {
            JetStreamRefusal(status: 400, code: code, description: words).lastSequence
        }
        #expect(last(10_071, "wrong last sequence: 42") == 42)
        #expect(last(10_071, "wrong last sequence: 0") == 0)
        #expect(last(10_071, "wrong last sequence") == nil)
        #expect(last(10_071, "wrong last sequence: many") == nil)
        #expect(last(10_164, "wrong last sequence: 42") == nil)
    }

    @Test func `limits are errors at once: bytes, requests, message size, subject`() throws {
        var outbox = try outbox {
            $0.pendingBytes = 150
            $0.requests = 2
            $0.headerBytes = 20
        }
        add(&outbox, "large", payload: 101)
        add(&outbox, "bad subject")
        add(&outbox, "first", payload: 90)
        add(&outbox, "second", payload: 90)
        guard let write = outbox.takeWrite() else {
            Issue.record("nothing is written")
            return
        }
        // What the socket has not taken still counts.
        add(&outbox, "third", payload: 90)
        outbox.wrote(write)
        add(&outbox, "fourth", payload: 90)
        add(&outbox, "fifth", payload: 1)
        var headers = NATSHeaders()
        try headers.append("name", "a long value")
        outbox.add(
            OutgoingPublish(subject: "headers", payload: ByteBuffer(), headers: headers),
            outcomes.request("headers"),
            now: 0,
            deadline: 1
        )
        report(outbox.takeRefused())
        func kind(_ name: String) -> NATSError.Kind? {
            if case .notSent(let error)? = outcomes[name].first { error.kind } else { nil }
        }
        let kinds = ["large", "bad subject", "first", "second", "third", "fourth", "fifth", "headers"].map(kind)
        #expect(kinds == [.tooLarge, .badMessage, nil, .busy, .busy, nil, .busy, .tooLarge])
        #expect(outbox.statistics.refusedBusy == 3)
    }

    @Test func `a deadline passes once, within a tick, also far away`() throws {
        var outbox = try outbox()
        let tick = OpenRequests<Request>.tick
        // The last one is beyond a whole round of the deadlines' ring.
        let deadlines: [UInt64] = [tick, 10 * tick, 300 * tick, 1000 * tick]
        for deadline in deadlines { add(&outbox, "d\(deadline)", deadline: deadline) }
        for time in 0...1002 {
            report(outbox.expire(at: UInt64(time) * tick))
            for deadline in deadlines {
                let expected = deadline <= UInt64(time) * tick
                #expect(outcomes["d\(deadline)"] == (expected ? [.unknown(.timeout)] : []), "at tick \(time)")
            }
        }
        let found7 = answer(&outbox, "_INBOX.me.0", #"{"stream":"S","seq":7}"#)
        #expect(found7 == 0)
        #expect(outbox.requests.count == 0)
        // After a long sleep nothing is overlooked.
        add(&outbox, "late", deadline: 1004 * tick)
        report(outbox.expire(at: 5000 * tick))
        #expect(outcomes["late"] == [.unknown(.timeout)])
    }

    @Test func `subscriptions come first on each connection, and a server that leaves gets nothing new`() throws {
        var outbox = try outbox()
        let subscriber = Outbox.Subscriber(subject: "a.>") { _ in }
        let number = try outbox.subscribe(subscriber)
        #expect(throws: NATSError.self) {
            var other = outbox
            _ = try other.subscribe(Outbox.Subscriber(subject: "a b") { _ in })
        }
        let subscribed = write(&outbox)
        #expect(subscribed == "SUB a.> 2\r\n")
        outbox.leave()
        add(&outbox, "leaving")
        report(outbox.takeRefused())
        guard case .notSent(let error)? = outcomes["leaving"].first else {
            Issue.record("it was sent")
            return
        }
        #expect(error.kind == .notConnected)
        _ = outbox.disconnect(NATSError(.connectionLost, "gone"))
        outbox.connect(try info())
        let again = write(&outbox)
        #expect(again == "SUB _INBOX.me.* 1\r\nSUB a.> 2\r\n")
        outbox.unsubscribe(number)
        let unsubscribed = write(&outbox)
        #expect(unsubscribed == "UNSUB 2\r\n")
        #expect(outbox.subscriber(number) == nil)
    }
}
