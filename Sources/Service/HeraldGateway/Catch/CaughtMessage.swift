package import HeraldMailbox
package import HeraldModel

/// A provider's request that was kept, with its payload and its answer.
package struct CaughtMessage: Sendable {
    /// The interface that the request came through.
    package enum Interface: String, Sendable {
        case http2
        case binary
    }

    /// The credential of the provider.
    package enum Sender: Hashable, Sendable {
        /// The identifier of a key.
        case key(String)
        /// The serial number of a certificate, in lower-case hex.
        case certificate(String)
    }

    /// Bytes that a message takes beside its texts, about.
    private static let overhead = 512

    package var interface: Interface = .http2
    package let time: WallTime
    package let environment: PushEnvironment
    /// The topic of the request or of its certificate; nil if there is none, or a malformed one.
    package let topic: Topic?
    package var sender: Sender?
    /// The fields of the header that Herald reads, without `authorization` and the path.
    package var headers: [String: String] = [:]
    package let payload: [UInt8]
    /// The tag of the test that sent it.
    package var tag: String?
    /// The identifier in the answer: `apns-id`, or `apns-request-id` of a broadcast.
    package var id: String?
    /// `apns-unique-id`.
    package var uniqueID: String?
    /// The device and app of the token; nil for a broadcast, and if the token was not opened.
    package var slot: Slot?
    /// The device token as the provider wrote it, if it was not opened.
    package var unopenedToken: String?
    /// The status of the answer, at the binary interface 0 for none; nil if a drill withheld the answer.
    package var status: Int?
    package var reason: String?
    package var explanation: String?
    /// Whether Herald accepted it, whatever the provider learned of that.
    package var isAccepted = false
    /// The provider's connection, an object that stands for it; nil at the binary interface.
    package var connection: (any CompletionHandler)?
    /// The same number for the same provider token, as long as the process lives; nil without one.
    package var providerToken: Int?
    /// `retry-after` of the answer, in seconds.
    package var retryAfter: Int?
    /// The time of the answer; nil without one.
    package var answered: WallTime?

    /// The memory that it takes, about.
    var size: Int {
        let texts = headers.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        let answer =
            (reason?.utf8.count ?? 0) + (explanation?.utf8.count ?? 0)
            + (unopenedToken?.utf8.count ?? 0)
        return payload.count + texts + answer + CaughtMessage.overhead
    }
}

/// A request that is kept until its answer is known; it stays on the event loop of its connection.
final class CaughtDraft {
    var message: CaughtMessage

    init(_ message: CaughtMessage) {
        self.message = message
    }

    /// Notes what the request has become.
    func note(_ notification: Notification) {
        message.slot = notification.slot
        message.id = notification.id.description
        message.uniqueID = notification.uniqueID.description
    }
}
