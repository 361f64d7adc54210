import NIOCore
import Testing

@testable import HeraldNATS

@Suite struct BoundedReadingTests {
    /// Parts of an answer, as a server of version 2.15.1 sends them.
    private enum Part {
        case message(subject: String, sequence: UInt64, last: UInt64, pending: UInt64)
        case end(last: UInt64, pending: UInt64, upTo: UInt64?)
        case status(Int, String)

        var message: NATSMessage {
            switch self {
            case .message(let subject, let sequence, let last, let pending):
                message(
                    """
                    Nats-Sequence: 999\r\nNats-Stream: S\r\nNats-Subject: \(subject)\r\nNats-Sequence: \(sequence)\r\n\
                    Nats-Num-Pending: \(pending)\r\nNats-Last-Sequence: \(last)\r\n
                    """,
                    payload: "12345"
                )
            case .end(let last, let pending, let upTo):
                message(
                    "Nats-Num-Pending: \(pending)\r\nNats-Last-Sequence: \(last)\r\n"
                        + (upTo.map { "Nats-UpTo-Sequence: \($0)\r\n" } ?? ""),
                    status: NATSStatus(code: 204, description: "EOB")
                )
            case .status(let code, let words): message("", status: NATSStatus(code: code, description: words))
            }
        }

        /// The part, with a status that the writer of the message gave it.
        var withStatus: NATSMessage {
            let message = message
            return NATSMessage(
                subscription: message.subscription,
                subjectBytes: message.subjectBytes,
                replyToBytes: nil,
                status: NATSStatus(code: 404, description: "No Results"),
                headers: message.headers,
                payload: message.payload
            )
        }

        private func message(_ lines: String, status: NATSStatus? = nil, payload: String = "") -> NATSMessage {
            NATSMessage(
                subscription: 1,
                subjectBytes: ByteBuffer(string: "_INBOX.me.0"),
                replyToBytes: nil,
                status: status,
                headers: NATSHeaders(lines: ByteBuffer(string: lines)),
                payload: ByteBuffer(string: payload)
            )
        }
    }

    private static let first = Part.message(subject: "a", sequence: 5, last: 0, pending: 1)
    private static let second = Part.message(subject: "b", sequence: 9, last: 5, pending: 0)
    private static let end = Part.end(last: 9, pending: 0, upTo: 12)

    private func read(_ parts: [Part], bound: UInt64 = 12, byteLimit: Int = 10_000) -> BoundedRead? {
        var reading = BoundedReading(bound: bound, byteLimit: byteLimit)
        for part in parts {
            if let outcome = reading.received(part.message) { return outcome }
        }
        return nil
    }

    @Test func `a stored message is one, whatever status its writer gave it`() {
        var reading = BoundedReading(bound: 12, byteLimit: 10_000)
        #expect(reading.received(Self.first.withStatus) == nil && reading.received(Self.second.withStatus) == nil)
        guard case .complete(let messages, 12)? = reading.received(Self.end.message) else {
            Issue.record("it is not complete")
            return
        }
        #expect(messages.map(\.subject) == ["a", "b"])
    }

    @Test func `a whole answer as of the bound is complete, and not before its end`() {
        #expect(read([Self.first, Self.second]) == nil)
        guard case .complete(let messages, let upTo)? = read([Self.first, Self.second, Self.end]) else {
            Issue.record("it is not complete")
            return
        }
        #expect(upTo == 12)
        #expect(messages.map(\.subject) == ["a", "b"])
        // The server's fields count, and not those that the publisher chose.
        #expect(messages.map(\.sequence) == [5, 9])
    }

    @Test func `an answer as of an earlier sequence is behind`() {
        #expect(read([Self.first, Self.second, Self.end], bound: 13) == .behind)
        #expect(read([Self.first, Self.second, .end(last: 9, pending: 0, upTo: 11)]) == .behind)
    }

    @Test func `a part that is lost, comes twice or in another order makes the answer behind`() {
        #expect(read([Self.second, Self.end]) == .behind)
        #expect(read([Self.first, Self.end]) == .behind)
        #expect(read([Self.first, Self.first]) == .behind)
        #expect(read([Self.second, Self.first]) == .behind)
        #expect(read([Self.end]) == .behind)
        #expect(read([Self.first, .message(subject: "b", sequence: 9, last: 5, pending: 1)]) == .behind)
        #expect(read([Self.first, Self.second, .end(last: 5, pending: 0, upTo: 12)]) == .behind)
        #expect(read([Self.first, .status(404, "Message Not Found")]) == .behind)
        #expect(read([.status(404, "Message Not Found")]) == .behind)
    }

    @Test func `nothing comes after the outcome`() {
        var tooLarge = BoundedReading(bound: 12, byteLimit: 150)
        let outcomes = [Self.first, Self.second, Self.first, Self.end].map { tooLarge.received($0.message) }
        #expect(outcomes.filter { $0 != nil }.count == 1)
        #expect(tooLarge.failed(.noResponders) == nil)

        var lost = BoundedReading(bound: 12, byteLimit: 10_000)
        #expect(lost.failed(.closed) == .failed(.failed(.closed)))
        #expect(lost.received(Self.end.message) == nil)
    }

    @Test func `no results prove nothing`() {
        #expect(read([.status(404, "No Results")]) == .nothing)
        #expect(read([.status(404, "No Results")], bound: 0) == .nothing)
    }

    @Test func `what is too much or unreadable is an error`() {
        func kind(_ outcome: BoundedRead?) -> NATSError.Kind? {
            if case .failed(.failed(let error))? = outcome { error.kind } else { nil }
        }
        #expect(kind(read([Self.first, Self.second, Self.end], byteLimit: 150)) == .tooLarge)
        #expect(kind(read([Self.first, .end(last: 5, pending: 1, upTo: 12)])) == .tooLarge)
        #expect(kind(read([Self.first, Self.second, .end(last: 9, pending: 0, upTo: nil)])) == .unreadableAnswer)
        #expect(
            read([.status(413, "Too Many Results")])
                == .failed(.refused(JetStreamRefusal(status: 413, description: "Too Many Results")))
        )
    }
}
