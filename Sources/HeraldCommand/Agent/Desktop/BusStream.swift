/// What a client reads from a bus: first the lines that let it in, then messages.
///
/// It knows no socket.
struct BusStream {
    /// What came of some bytes.
    enum Event: Hashable, Sendable {
        /// The bus let the client in: these bytes are sent, then messages.
        case accepted([UInt8])
        /// A message.
        case message(BusMessage)
    }

    /// The longest message that is read, in bytes; the notification service sends some hundred.
    static let maximumMessageBytes = 1 << 20
    /// The longest line of the greeting, in bytes.
    static let maximumLineBytes = 4096

    private var isAccepted = false
    private var unread: [UInt8] = []

    /// What is sent first: that the client is this user, which the bus knows from the socket.
    static func greeting(user: UInt32) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        let name = String(user).utf8.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return [0] + Array("AUTH EXTERNAL ".utf8) + name + Array("\r\n".utf8)
    }

    /// Takes what came from the socket.
    /// - Throws: ``BusError``; then the connection is of no use any more.
    mutating func take(_ bytes: some Sequence<UInt8>) throws -> [Event] {
        unread += bytes
        var events: [Event] = []
        if !isAccepted {
            guard let end = unread.firstIndex(of: UInt8(ascii: "\n")) else {
                guard unread.count <= Self.maximumLineBytes else { throw BusError("it sends what is not D-Bus") }
                return []
            }
            let line = String(decoding: unread[..<end], as: UTF8.self)
            guard line.hasPrefix("OK ") else { throw BusError("it does not let this user in") }
            unread.removeSubrange(...end)
            isAccepted = true
            events.append(.accepted(Array("BEGIN\r\n".utf8)))
        }
        while let length = try BusMessage.length(of: unread, limit: Self.maximumMessageBytes), length <= unread.count {
            if let message = try BusMessage(Array(unread[..<length])) { events.append(.message(message)) }
            unread.removeSubrange(..<length)
        }
        return events
    }
}
