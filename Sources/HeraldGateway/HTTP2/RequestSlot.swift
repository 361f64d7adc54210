import HeraldMailbox
import NIOCore

/// One request of a connection, from its header to its answer; used again for the next.
///
/// A class with plain storage: it is written to by callbacks of the HTTP/2 layer, several times for each request. It
/// stays on the event loop of its connection, and goes without the check for overlapping accesses where
/// ``HTTP2Session`` does.
final class RequestSlot {
    enum Phase {
        /// Nobody's.
        case free
        /// Its header or body is still coming.
        case receiving
        /// All of it is here, or as much as will be read.
        case complete
        /// The client reset it before it was looked at.
        case abandoned
        /// The post office has it; its receipt will come.
        case inHand
        /// A drill never answers it.
        case unanswered
        /// Its answer has been given to the HTTP/2 layer.
        case answered
    }

    let index: Int
    /// Counts the requests that had this slot, so that a late receipt finds out that it is too late.
    var generation: UInt32 = 0
    @exclusivity(unchecked) var phase = Phase.free
    var streamID: Int32 = 0
    /// Whether the stream can still carry an answer.
    var isStreamOpen = false
    @exclusivity(unchecked) var fields = RequestFields()
    /// The body, up to ``HTTP2Limits/bodyBytes``.
    @exclusivity(unchecked) var body: [UInt8] = []
    /// All of the body that came, kept or dropped.
    @exclusivity(unchecked) var bodyByteCount = 0
    /// Whether there was no room for the body (``BodyLoad``).
    var isBodyDropped = false
    /// Whether the client has ended the request; if not, the stream is reset after the answer.
    @exclusivity(unchecked) var isEnded = false
    /// What is due next on this stream; nil while the post office has it.
    @exclusivity(unchecked) var deadline: NIODeadline?

    /// The identifier for the answer (`apns-id`), and the service's own.
    var replyID: IdentifierText?
    var replyUniqueID: IdentifierText?
    var explains = false
    /// Whether it is about channels: its identifier is `apns-request-id`.
    var isAboutChannels = false
    /// The answer once the receipt says so, where it is another than ``Reply/accepted``.
    var acceptance: Reply?
    /// What a drill makes of it.
    var drill: RequestDrill?
    /// What the request came to; kept only where the provider asks what became of it.
    var letter: Letter?
    /// The answer's body, and how much of it the HTTP/2 layer has taken.
    var replyBody: [UInt8] = []
    var replyOffset = 0

    init(index: Int) {
        self.index = index
    }

    /// Takes the slot for a new stream.
    func open(streamID: Int32, deadline: NIODeadline) {
        generation &+= 1
        phase = .receiving
        self.streamID = streamID
        isStreamOpen = true
        self.deadline = deadline
    }

    /// Gives up all that belonged to the request; the memory of its fields stays for the next.
    func close() {
        phase = .free
        streamID = 0
        isStreamOpen = false
        isEnded = false
        deadline = nil
        fields.clear()
        body = []
        bodyByteCount = 0
        isBodyDropped = false
        replyID = nil
        replyUniqueID = nil
        explains = false
        isAboutChannels = false
        acceptance = nil
        drill = nil
        letter = nil
        replyBody = []
        replyOffset = 0
    }

    /// Names this request to somebody who answers later.
    var number: UInt64 {
        UInt64(generation) << 32 | UInt64(UInt32(truncatingIfNeeded: index))
    }
}
