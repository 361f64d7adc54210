import NIOCore

/// Gathers the answer of a bounded read, and proves that it is whole and fresh enough.
///
/// Each message names the sequence of the one before it, and how many follow. The end line names the last one, and the sequence
/// as of which the replica answered (ADR-31 of NATS).
struct BoundedReading {
    private let bound: UInt64
    private let byteLimit: Int
    private var messages: [StoredMessage] = []
    private var bytes = 0
    private var pending: UInt64?
    private var isOver = false

    init(bound: UInt64, byteLimit: Int) {
        self.bound = bound
        self.byteLimit = byteLimit
    }

    /// Takes a part of the answer.
    /// - Returns: The outcome; nil if more is to come, or if the reading is over.
    mutating func received(_ message: NATSMessage) -> BoundedRead? {
        guard !isOver, let outcome = take(message) else { return nil }
        isOver = true
        return outcome
    }

    /// Ends the reading without an answer.
    /// - Returns: The outcome; nil if the reading is over.
    mutating func failed(_ error: NATSError) -> BoundedRead? {
        guard !isOver else { return nil }
        isOver = true
        return .failed(.failed(error))
    }

    private mutating func take(_ message: NATSMessage) -> BoundedRead? {
        // Who wrote a message may have given it a status, but a server's own status names no subject.
        if let status = message.status, message.headers.lastValue("Nats-Subject") == nil {
            return end(status, message.headers)
        }
        guard let stored = StoredMessage(directGet: message), let left = message.headers.lastNumber("Nats-Num-Pending")
        else { return .failed(.failed(NATSError(.unreadableAnswer, "a message of a read lacks its place"))) }
        let last = messages.last?.sequence ?? 0
        let isNext = pending.map { $0 > 0 && left == $0 - 1 } ?? true
        guard message.headers.lastNumber("Nats-Last-Sequence") == last, stored.sequence > last, isNext else {
            return .behind
        }
        bytes += message.payload.readableBytes + message.headers.lines.readableBytes
        guard bytes <= byteLimit else { return Self.tooLarge(byteLimit) }
        pending = left
        messages.append(stored)
        return nil
    }

    private func end(_ status: NATSStatus, _ headers: NATSHeaders) -> BoundedRead {
        switch status.code {
        case 204:
            guard let upTo = headers.number("Nats-UpTo-Sequence"), let left = headers.number("Nats-Num-Pending") else {
                return .failed(.failed(NATSError(.unreadableAnswer, "the end of a read names no sequence")))
            }
            let isWhole = headers.number("Nats-Last-Sequence") == messages.last?.sequence ?? 0 && pending == left
            guard isWhole, upTo >= bound else { return .behind }
            return left == 0 ? .complete(messages, upTo: upTo) : Self.tooLarge(byteLimit)
        case 404:
            // Any other 404 is about a message that was replaced while the replica answered.
            return messages.isEmpty && status.description == "No Results" ? .nothing : .behind
        default:
            return .failed(.refused(JetStreamRefusal(status: status.code, description: status.description)))
        }
    }

    private static func tooLarge(_ limit: Int) -> BoundedRead {
        .failed(
            .failed(NATSError(.tooLarge, "the answer of a read has more than \(limit) bytes: ask for fewer subjects"))
        )
    }
}

extension StoredMessage {
    /// The message that a direct get answers; nil if it does not say which one it is.
    init?(directGet message: NATSMessage) {
        guard let subject = message.headers.lastValue("Nats-Subject"),
            let sequence = message.headers.lastNumber("Nats-Sequence"), sequence > 0
        else { return nil }
        self.init(subject: subject, sequence: sequence, headers: message.headers, payload: message.payload)
    }
}
