package import NIOCore

/// Message from a server.
///
/// It consists of slices of the bytes that the socket delivered: a message that is kept for long is copied first. Strings are
/// made for readers that ask for them.
package struct NATSMessage: Hashable, Sendable {
    /// Number of the subscription for which it came.
    let subscription: UInt64
    let subjectBytes: ByteBuffer
    let replyToBytes: ByteBuffer?
    /// Status of a message that a server itself wrote, such as 404 or 503; nil for an ordinary message.
    package let status: NATSStatus?
    package let headers: NATSHeaders
    package let payload: ByteBuffer

    package var subject: String { String(buffer: subjectBytes) }

    /// Subject to which an answer goes; nil if none is awaited.
    package var replyTo: String? { replyToBytes.map { String(buffer: $0) } }

    /// Whether the server says that nobody listens to the subject of a request.
    ///
    /// A service may answer 503 itself, but with more than this status.
    var isNoResponders: Bool { status?.code == 503 && payload.readableBytes == 0 }
}

/// Status line of a message: a number of three digits, and words.
package struct NATSStatus: Hashable, Sendable {
    package let code: Int
    package let description: String
}
