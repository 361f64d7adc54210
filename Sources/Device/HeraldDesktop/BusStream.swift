import HeraldModel

/// Decodes what a client reads from a bus: first the lines of the authentication, then messages; knows no socket.
struct BusStream {
    enum Event: Hashable, Sendable {
        /// The bus has accepted the client, which answers with these bytes and then sends messages.
        case accepted([UInt8])
        case message(BusMessage)
    }

    /// The longest message, in bytes; the notification service sends some hundred.
    static let maximumMessageBytes = 1 << 20
    /// The longest line of the authentication, in bytes.
    static let maximumLineBytes = 4096

    private var isAccepted = false
    private var unread: [UInt8] = []

    /// The first bytes: the client claims to be this user, which the bus verifies by the socket.
    static func authentication(user: UInt32) -> [UInt8] {
        [0] + Array("AUTH EXTERNAL \(Hex.text(String(user).utf8))\r\n".utf8)
    }

    /// Takes bytes from the socket.
    /// - Throws: ``BusError``; the connection is then unusable.
    mutating func take(_ bytes: some Sequence<UInt8>) throws -> [Event] {
        unread += bytes
        var events: [Event] = []
        if !isAccepted {
            guard let end = unread.firstIndex(of: UInt8(ascii: "\n")) else {
                guard unread.count <= Self.maximumLineBytes else { throw BusError("it does not speak D-Bus") }
                return []
            }
            let line = String(decoding: unread[..<end], as: UTF8.self)
            guard line.hasPrefix("OK ") else { throw BusError("it refuses this user") }
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
