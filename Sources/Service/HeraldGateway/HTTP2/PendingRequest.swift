import HeraldMailbox
import NIOCore

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

    let index: Int
    /// Counts the uses of this entry, so that a late completion of an earlier request is recognized.
    var generation: UInt32 = 0
    @exclusivity(unchecked) var phase = Phase.free
    var streamID: Int32 = 0
    /// Whether the stream can still carry an answer.
    var isStreamOpen = false
    @exclusivity(unchecked) var fields = RequestFields()
    /// The body, up to ``HTTP2Limits/bodyBytes``.
    @exclusivity(unchecked) var body: [UInt8] = []
    /// Bytes of the body that arrived, kept or dropped.
    @exclusivity(unchecked) var bodyByteCount = 0
    /// Whether the body was dropped for lack of memory (``BodyMemory``).
    var isBodyDropped = false
    /// Whether the client has ended the request; if not, the stream is reset after the answer.
    @exclusivity(unchecked) var isEnded = false
    /// The arrival of its header.
    @exclusivity(unchecked) private(set) var begun = NIODeadline.uptimeNanoseconds(0)
    /// The deadline of the stream's next step; nil while the post office has the request.
    @exclusivity(unchecked) var deadline: NIODeadline?

    /// The identifiers in the answer: `apns-id` or `apns-request-id`, and `apns-unique-id`.
    var replyID: IdentifierText?
    var replyUniqueID: IdentifierText?
    /// Whether the provider asks for explanations (`herald-explain: 1`).
    var explains = false
    /// Whether it concerns channels or broadcasts: its answer carries `apns-request-id`.
    var isAboutChannels = false
    /// The parts of the cluster's state that this node has learned for it, before it looked at it again.
    var confirmed: [SharedPart] = []
    /// The answer after acceptance; nil for ``Reply/accepted``.
    var acceptance: Reply?
    private(set) var drill: RequestDrill?
    /// The notification's envelope; only kept for an explanation.
    var envelope: Envelope?
    /// The request as it is caught; nil if it is not.
    var caught: CaughtDraft?
    /// The body of the answer, and how much of it the HTTP/2 layer has taken.
    var replyBody: [UInt8] = []
    var replyOffset = 0

    init(index: Int) {
        self.index = index
    }

    /// Begins a new request.
    func open(streamID: Int32, at now: NIODeadline, deadline: NIODeadline) {
        generation &+= 1
        phase = .receiving
        self.streamID = streamID
        isStreamOpen = true
        begun = now
        self.deadline = deadline
    }

    /// Ends the request; the memory of its fields stays for the next one.
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
        confirmed = []
        acceptance = nil
        drill = nil
        envelope = nil
        caught = nil
        replyBody = []
        replyOffset = 0
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
