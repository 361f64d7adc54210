/// The limits of PushChat.
struct ChatLimits: Sendable {
    /// The longest nickname, in bytes of UTF-8.
    var nameBytes = 64
    /// The longest secret code, in bytes of UTF-8.
    var codeBytes = 128
    /// The longest message, in bytes of UTF-8.
    ///
    /// An alert shows as much of it as fits.
    var textBytes = 8_000
    /// The longest request body, in bytes: a form may spell each byte in three.
    var bodyBytes = 32_768
    /// The most users in a room: each message is a notification for everybody else.
    var usersInRoom = 50
    /// The most users of all rooms.
    var users = 10_000
    /// The most messages that are kept of a room; the oldest go first.
    var messagesInRoom = 10_000
    /// The most messages that one user sends within ``window`` seconds.
    var messagesInWindow = 30
    /// In seconds.
    var window = 10.0
    /// The most messages in one answer.
    var messagesInAnswer = 200
    /// The highest number on the app's icon.
    var badge = 999
    /// The largest payload that APNs takes of an alert.
    var payloadBytes = 4_096
    /// The most connections at one time.
    var connections = 512
    /// After how many seconds an idle connection is closed.
    var idleSeconds: Int64 = 60
}
