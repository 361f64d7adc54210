package import NIOCore

/// Message of a stream, read from one of its replicas.
package struct StoredMessage: Hashable, Sendable {
    package let subject: String
    package let sequence: UInt64
    /// Header fields of the message.
    ///
    /// The fields of the read itself (`Nats-Stream` and so on) are among them.
    package let headers: NATSHeaders
    package let payload: ByteBuffer
}

/// Outcome of a bounded read: the newest message of each subject, as of a sequence or later.
package enum BoundedRead: Hashable, Sendable {
    /// The whole answer, in the order of the stream, as of the sequence `upTo`, which is not below the bound.
    case complete([StoredMessage], upTo: UInt64)
    /// The replica that answered lacks something below the bound, or parts of its answer were lost. Read again.
    case behind
    /// The replica has no message for any of the subjects. The server does not say as of which sequence, so this proves nothing
    /// unless the bound is 0. A reader that must know asks also for a subject that exists.
    case nothing
    case failed(JetStreamError)
}
