import NIOCore

/// Rules of an ordered consumer: which message comes next, when one is missing, and when the beginning is over.
///
/// It has neither clock nor socket.
struct OrderedFeed {
    enum Effect: Hashable {
        case none
        case deliver(StoredMessage, reachesEnd: Bool)
        /// Publishes an empty message to the subject: the server may go on.
        case goOn(String)
        /// Nothing waited at the server when it sent this.
        case idle
        /// Makes another consumer.
        case restart(NATSError)
    }

    /// Sequence of the last message of the stream that was delivered; nil before the first.
    private(set) var last: UInt64?
    /// Number of the last message of this consumer.
    private var number: UInt64 = 0
    /// Number of the message with which the state at the beginning is complete; nil before the consumer's answer.
    private var goal: UInt64?

    init(after last: UInt64? = nil) {
        self.last = last
    }

    /// Another consumer begins.
    mutating func begin() {
        number = 0
        goal = nil
    }

    /// The consumer is there.
    /// - Parameter total: Messages that it had to deliver then.
    /// - Returns: Whether they have all come.
    mutating func created(total: UInt64) -> Bool {
        goal = total
        return number >= total
    }

    mutating func received(_ message: NATSMessage) -> Effect {
        guard let place = message.replyToBytes.flatMap(ConsumerPlace.init) else {
            // Only without a place in the stream is a status the server's, and not of who wrote the message.
            if let status = message.status { return control(status, message) }
            return .restart(NATSError(.unreadableAnswer, "a message of a consumer lacks its place"))
        }
        guard place.number == number + 1, place.sequence > last ?? 0 else {
            return .restart(
                NATSError(.connectionLost, "messages between \(last ?? 0) and \(place.sequence) are missing")
            )
        }
        number = place.number
        last = place.sequence
        let stored = StoredMessage(
            subject: message.subject,
            sequence: place.sequence,
            headers: message.headers,
            payload: message.payload
        )
        return .deliver(stored, reachesEnd: place.pending == 0 || goal.map { number >= $0 } ?? false)
    }

    private func control(_ status: NATSStatus, _ message: NATSMessage) -> Effect {
        guard status.code == 100 else {
            return .restart(NATSError(.connectionLost, "the consumer ends: \(status.code) \(status.description)"))
        }
        if let subject = message.replyTo { return .goOn(subject) }
        guard message.headers.number("Nats-Last-Consumer") == number else {
            return .restart(NATSError(.connectionLost, "the consumer has sent more than has come"))
        }
        if let subject = message.headers.value("Nats-Consumer-Stalled") { return .goOn(subject) }
        return .idle
    }
}

/// Place of a message in its consumer: the subject for its acknowledgement,
/// `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<number>.<time>.<pending>`.
///
/// Servers may put a domain and an account between `ACK` and the stream, and a random token at the end (ADR-15 of NATS).
struct ConsumerPlace: Hashable {
    /// Sequence in the stream.
    let sequence: UInt64
    /// Number in the consumer, from 1.
    let number: UInt64
    /// Messages that follow it at that time.
    let pending: UInt64

    init?(_ subject: ByteBuffer) {
        let bytes = subject.readableBytesView
        guard bytes.starts(with: "$JS.ACK.".utf8) else { return nil }
        let count = bytes.reduce(1) { $1 == UInt8(ascii: ".") ? $0 + 1 : $0 }
        guard count == 9 || (11...13).contains(count) else { return nil }
        let first = count == 9 ? 5 : 7
        var numbers: (UInt64?, UInt64?, UInt64?) = (nil, nil, nil)
        var place = 0
        var begin = bytes.startIndex
        while begin < bytes.endIndex {
            let end = bytes[begin...].firstIndex(of: UInt8(ascii: ".")) ?? bytes.endIndex
            switch place - first {
            case 0: numbers.0 = Decimal.read(bytes[begin..<end])
            case 1: numbers.1 = Decimal.read(bytes[begin..<end])
            case 3: numbers.2 = Decimal.read(bytes[begin..<end])
            default: break
            }
            place += 1
            begin = min(end + 1, bytes.endIndex)
        }
        guard let sequence = numbers.0, let number = numbers.1, let pending = numbers.2 else { return nil }
        (self.sequence, self.number, self.pending) = (sequence, number, pending)
    }
}
