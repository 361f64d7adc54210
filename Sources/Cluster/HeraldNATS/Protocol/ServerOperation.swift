/// Operation that a server sends.
enum ServerOperation: Hashable {
    case info(NATSServerInfo)
    case message(NATSMessage)
    case ping
    case pong
    case ok
    /// `-ERR`, with its text.
    case error(String)
}
