import HeraldMailbox
import NIOCore

/// The error code of a reset in place of an answer (RFC 9113 §7).
enum StreamReset: UInt32 {
    /// INTERNAL_ERROR: the client cannot know what has happened to its request.
    case internalError = 2
    /// REFUSED_STREAM: nothing has happened, and the client may send the request again (RFC 9113 §8.7).
    case refusedStream = 7
}

/// One request of a connection, from its header to its answer; reused for later requests.
///
/// A class with plain storage, because the callbacks of the HTTP/2 layer write to it several times per request. It stays
/// on the event loop of its connection, and skips the run-time check for overlapping accesses as ``HTTP2Session`` does.
final class PendingRequest {
    enum Phase {
        /// Not in use.
        case free
        /// Header or body are still arriving.
        case receiving
        /// Everything that will be read has arrived.
        case complete
        /// The client reset it before it was validated.
        case abandoned
        /// The post office has it; its completion will come.
        case posted
        /// A drill never answers it.
        case unanswered
        /// The HTTP/2 layer has its answer.
        case answered
    }

    /// The HTTP/2 stream of the request; 0 if the entry is not in use.
    struct Stream {
        var id: Int32 = 0
        /// Whether it can still carry an answer.
        var isOpen = false
    }

    /// The parts of the answer that are known before it is sent.
    struct Answer {
        /// `apns-id` or `apns-request-id`, and `apns-unique-id`.
        var id: IdentifierText?
        var uniqueID: IdentifierText?
        /// Whether the provider asks for explanations (`herald-explain: 1`).
        var explains = false
        /// Whether the request concerns channels or broadcasts: its answer carries `apns-request-id`.
        var isAboutChannels = false
        /// The answer after acceptance; nil for ``Reply/accepted``.
        var acceptance: Reply?
        /// The notification's envelope; only kept for an explanation.
        var envelope: Envelope?
        /// The body, and how much of it the HTTP/2 layer has taken.
        var body: [UInt8] = []
        var offset = 0
    }

    let index: Int
    /// Counts the uses of this entry, so that a late completion of an earlier request is recognized.
    var generation: UInt32 = 0
    @exclusivity(unchecked) var phase = Phase.free
    var stream = Stream()
    @exclusivity(unchecked) var fields = RequestFields()
    /// The body, up to ``HTTP2Limits/bodyBytes``.
    @exclusivity(unchecked) var body: [UInt8] = []
    /// Bytes of the body that arrived, and whether they were dropped for lack of memory (``BodyMemory``).
    @exclusivity(unchecked) var received = (byteCount: 0, isDropped: false)
    /// Whether the client has ended the request; if not, the stream is reset after the answer.
    @exclusivity(unchecked) var isEnded = false
    /// The arrival of its header.
    @exclusivity(unchecked) private(set) var begun = NIODeadline.uptimeNanoseconds(0)
    /// The deadline of the stream's next step; nil while the post office has the request.
    @exclusivity(unchecked) var deadline: NIODeadline?

    var answer = Answer()
    /// The parts of the cluster's state that this node has learned for it, before it looked at it again.
    var confirmed: [SharedPart] = []
    private(set) var drill: RequestDrill?
    /// The request as it is caught; nil if it is not.
    var caught: CaughtDraft?

    init(index: Int) {
        self.index = index
    }

    /// Begins a new request.
    func open(streamID: Int32, at now: NIODeadline, deadline: NIODeadline) {
        generation &+= 1
        phase = .receiving
        stream = Stream(id: streamID, isOpen: true)
        begun = now
        self.deadline = deadline
    }

    /// Ends the request; the memory of its fields stays for the next one.
    func close() {
        phase = .free
        stream = Stream()
        isEnded = false
        deadline = nil
        fields.clear()
        body = []
        received = (0, false)
        answer = Answer()
        confirmed = []
        drill = nil
        caught = nil
    }

    /// The effects of drills, which were none so far.
    func beginDrill() -> RequestDrill {
        let begun = drill ?? RequestDrill()
        drill = begun
        return begun
    }

    /// Identifies this request in a completion.
    var number: UInt64 {
        UInt64(generation) << 32 | UInt64(UInt32(truncatingIfNeeded: index))
    }
}
