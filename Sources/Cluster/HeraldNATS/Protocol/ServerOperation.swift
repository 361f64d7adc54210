import NIOCore

/// Operation that a server sends.
enum ServerOperation: Hashable {
    case info(NATSServerInfo)
    case message(NATSDelivery)
    case ping
    case pong
    case ok
    /// `-ERR`, with its text.
    case error(String)
}

/// Message as it came: slices of the read bytes, of which a reader makes strings only if it needs them.
struct NATSDelivery: Hashable {
    let subscription: UInt64
    let subject: ByteBuffer
    let replyTo: ByteBuffer?
    let status: NATSStatus?
    /// Header lines, without the status line and the empty line.
    let headers: ByteBuffer
    let payload: ByteBuffer

    var message: NATSMessage {
        NATSMessage(
            subject: String(buffer: subject),
            replyTo: replyTo.map { String(buffer: $0) },
            status: status,
            headers: NATSHeaders(lines: headers),
            payload: payload
        )
    }
}
