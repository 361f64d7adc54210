import NIOCore

/// Reader of a stream from a place on, in its order and without gaps.
///
/// It makes a push consumer in the server's memory, without acknowledgements, and makes another one from the last sequence + 1
/// whenever a message is missing, the server is silent, or the connection was lost. A slow callback slows the server down.
package final class OrderedConsumer: Sendable {
    /// Place of the first message.
    package enum Start: Hashable, Sendable {
        /// All messages that the stream has.
        case all
        /// The newest message of each subject.
        case newest
        /// The first message above a sequence.
        case after(UInt64)
    }

    package enum Event: Sendable {
        /// The next message, in the order of the stream.
        case message(StoredMessage)
        /// All messages that the stream had when the reader began have come. Comes once.
        case caughtUp
        /// Messages may be late from now on: the connection, the consumer or the stream is gone. The reader tries again.
        case interrupted(JetStreamError)
        /// A consumer is there again; messages come without a gap.
        case resumed
    }

    private let reader: NIOLoopBoundBox<OrderedReader>
    private let eventLoop: any EventLoop

    /// Reads subjects, which may have wildcards, at least one; `onEvent` is called on the connection's loop.
    package init(
        _ jetStream: JetStream,
        stream: String,
        subjects: [String],
        from start: Start,
        onEvent: @escaping @Sendable (Event) -> Void
    ) {
        eventLoop = jetStream.connection.eventLoop
        reader = NIOLoopBoundBox.makeBoxSendingValue(
            OrderedReader(jetStream, stream: stream, subjects: subjects, from: start, onEvent: onEvent),
            eventLoop: eventLoop
        )
    }

    /// Begins to read; at once, or when the connection is up.
    package func start() {
        onLoop { $0.start() }
    }

    /// Ends the reading.
    ///
    /// On the loop, no event comes after this call.
    package func stop() {
        onLoop { $0.stop() }
    }

    private func onLoop(_ body: @escaping @Sendable (OrderedReader) -> Void) {
        if eventLoop.inEventLoop {
            body(reader.value)
        } else {
            eventLoop.execute { body(self.reader.value) }
        }
    }
}
