import NIOCore
import Testing

@testable import HeraldNATS

@Suite struct OrderedFeedTests {
    private func delivery(
        _ sequence: UInt64,
        number: UInt64,
        pending: UInt64 = 1,
        place: String? = nil
    ) -> NATSMessage {
        let place = place ?? "$JS.ACK.S.c.1.\(sequence).\(number).1700000000000000000.\(pending)"
        return NATSMessage(
            subscription: 2,
            subjectBytes: ByteBuffer(string: "a.\(sequence)"),
            replyToBytes: ByteBuffer(string: place),
            status: nil,
            headers: NATSHeaders(),
            payload: ByteBuffer(string: "x")
        )
    }

    private func control(_ lines: String, replyTo: String? = nil, code: Int = 100) -> NATSMessage {
        NATSMessage(
            subscription: 2,
            subjectBytes: ByteBuffer(string: "a"),
            replyToBytes: replyTo.map { ByteBuffer(string: $0) },
            status: NATSStatus(code: code, description: "Idle Heartbeat"),
            headers: NATSHeaders(lines: ByteBuffer(string: lines)),
            payload: ByteBuffer()
        )
    }

    /// An effect as text.
    private func name(_ effect: OrderedFeed.Effect) -> String {
        switch effect {
        case .none: "none"
        case .deliver(let message, let reachesEnd): "\(message.sequence)\(reachesEnd ? " end" : "")"
        case .goOn(let subject): "go on \(subject)"
        case .idle: "idle"
        case .restart: "restart"
        }
    }

    private func play(_ feed: inout OrderedFeed, _ deliveries: [NATSMessage]) -> [String] {
        deliveries.map { name(feed.received($0)) }
    }

    @Test func `messages come in order; gaps of the stream are none of the consumer`() {
        var feed = OrderedFeed()
        feed.begin()
        let hasAll = feed.created(total: 3)
        let effects = play(
            &feed,
            [delivery(5, number: 1), delivery(9, number: 2), delivery(10, number: 3), delivery(11, number: 4)]
        )
        #expect(!hasAll)
        #expect(effects == ["5", "9", "10 end", "11 end"])
        #expect(feed.last == 11)
    }

    @Test func `a lost, repeated or older message begins another consumer behind the last one`() {
        for wrong in [delivery(10, number: 3), delivery(5, number: 1), delivery(5, number: 2), delivery(4, number: 2)] {
            var feed = OrderedFeed(after: 4)
            feed.begin()
            let effects = play(&feed, [delivery(5, number: 1), wrong])
            #expect(effects == ["5", "restart"])
            #expect(feed.last == 5)
            feed.begin()
            let again = play(&feed, [delivery(6, number: 1)])
            #expect(again == ["6"])
        }
    }

    @Test func `a message of the stream is one, whatever status its writer gave it`() {
        var feed = OrderedFeed()
        feed.begin()
        let codes = [100, 404, 409, 503]
        let effects = codes.enumerated().map { index, code in
            let place = "$JS.ACK.S.C.1.\(index + 5).\(index + 1).0.9"
            return play(&feed, [control("", replyTo: place, code: code)])
        }
        #expect(effects == [["5"], ["6"], ["7"], ["8"]])
    }

    @Test func `a heartbeat shows what is missing, and that nothing waits`() {
        var feed = OrderedFeed()
        feed.begin()
        let effects = play(
            &feed,
            [
                control("Nats-Last-Consumer: 0\r\nNats-Last-Stream: 0\r\n"), delivery(5, number: 1),
                control("Nats-Last-Consumer: 1\r\nNats-Last-Stream: 5\r\n"),
                control("Nats-Last-Consumer: 1\r\nNats-Last-Stream: 5\r\nNats-Consumer-Stalled: $JS.FC.x\r\n"),
                control("", replyTo: "$JS.FC.y"),
                control("Nats-Last-Consumer: 2\r\nNats-Last-Stream: 6\r\n"),
            ]
        )
        #expect(effects == ["idle", "5", "idle", "go on $JS.FC.x", "go on $JS.FC.y", "restart"])
        let end = play(&feed, [control("", code: 409)])
        #expect(end == ["restart"])
    }

    @Test func `the beginning is over with its last message, or at once if there is none, or if nothing follows`() {
        var feed = OrderedFeed()
        feed.begin()
        let isEmpty = feed.created(total: 0)
        #expect(isEmpty)
        feed.begin()
        // The messages may come before the answer that says how many they are.
        let early = play(&feed, [delivery(1, number: 1), delivery(2, number: 2)])
        #expect(early == ["1", "2"])
        let hasAll = feed.created(total: 2)
        #expect(hasAll)
        feed.begin()
        _ = feed.created(total: 10)
        let last = play(&feed, [delivery(7, number: 1, pending: 0)])
        #expect(last == ["7 end"])
    }

    @Test func `the place of a message is read in both of the servers' spellings`() {
        func place(_ text: String) -> ConsumerPlace? { ConsumerPlace(ByteBuffer(string: text)) }
        #expect(place("$JS.ACK.S.c.1.22.3.1700.4") != nil)
        for text in [
            "$JS.ACK.S.c.1.22.3.1700.4", "$JS.ACK.d.acc.S.c.1.22.3.1700.4", "$JS.ACK._.acc.S.c.1.22.3.1700.4.rnd",
        ] {
            let found = place(text)
            #expect(found?.sequence == 22 && found?.number == 3 && found?.pending == 4)
        }
        for text in [
            "", "$JS.ACK", "$JS.ACK.S.c.1.22.3.1700", "$JS.ACK.S.c.1.x.3.1700.4", "$JS.ACK.S.c.1.22.3.1700.",
            "$JS.NAK.S.c.1.22.3.1700.4",
        ] {
            #expect(place(text) == nil)
        }
        var feed = OrderedFeed()
        feed.begin()
        let effects = play(&feed, [delivery(1, number: 1, place: "elsewhere")])
        #expect(effects == ["restart"])
    }
}
