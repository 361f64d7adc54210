package import NIOCore

/// Message from a server.
///
/// Headers and payload are slices of the bytes that the socket delivered: a message that is kept for long is copied first.
package struct NATSMessage: Hashable, Sendable {
    package let subject: String
    /// Subject to which an answer goes; nil if none is awaited.
    package let replyTo: String?
    /// Status of a message that a server itself wrote, such as 404 or 503; nil for an ordinary message.
    package let status: NATSStatus?
    package let headers: NATSHeaders
    package let payload: ByteBuffer
}

/// Status line of a message: a number of three digits, and words.
package struct NATSStatus: Hashable, Sendable {
    package let code: Int
    package let description: String
}
