/// Error of a connection to NATS, with the reason in words for a log or an operator.
package struct NATSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Category of the error.
    package enum Kind: String, Hashable, Sendable {
        /// A setting cannot be used: an address, a credential, a certificate.
        case badSetting
        /// A subject, a header field or a payload that the protocol does not allow; nothing was sent.
        case badMessage
        /// A message larger than the server or ``NATSLimits`` allows; nothing was sent.
        case tooLarge
        /// No server is connected; nothing was sent.
        case notConnected
        /// A limit of ``NATSLimits`` is reached; nothing was sent.
        case busy
        /// Nobody listens to the subject: the server said so, and delivered the message to nobody.
        case noResponders
        /// No answer came in time.
        case timeout
        /// The connection ended after the message was handed to it.
        case connectionLost
        /// The server refused the credential.
        case authorization
        /// TLS could not be negotiated.
        case tls
        /// The server broke the protocol, or reported an error of it.
        case protocolViolation
        /// An answer that cannot be read.
        case unreadableAnswer
        /// The connection is closed for good, by ``NATSConnection/close()``.
        case closed
    }

    package let kind: Kind
    /// The reason, as the end of a sentence.
    package let reason: String

    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    package var description: String { reason }

    static let notConnected = NATSError(.notConnected, "no NATS server is connected")
    static let closed = NATSError(.closed, "the connection to NATS is closed")
    static let timeout = NATSError(.timeout, "NATS did not answer in time")
    static let noResponders = NATSError(.noResponders, "nobody at NATS listens to the subject")
}
