import HeraldModel
import NIOCore

/// One attempt of a request: its content, its progress on a stream, and its waiting sender.
///
/// It may move from one connection to another until a service processes it.
// Unchecked: one owner at a time. The sender fills it in before ``CallInbox`` has it; then only the event loop uses it.
final class Call: QueuedCall, @unchecked Sendable {
    let head: RequestHeader
    /// The value of `authorization`; nil if the connection's certificate authenticates the provider.
    let authorization: String?
    let body: [UInt8]
    /// Maximum length of the answer's body, in bytes.
    let answerLimit: Int
    /// Time limit for the outcome.
    let deadline: NIODeadline
    /// Whether it waits while the service is unreachable.
    let waitsForService: Bool

    // Every access to these would be checked otherwise, several times for each frame.
    @exclusivity(unchecked) var stage = CallStage.new
    @exclusivity(unchecked) var isCancelled = false
    @exclusivity(unchecked) var settle: ((Outcome) -> Void)?

    /// Number of streams that an open connection refused.
    var refusals = 0

    // MARK: - Progress on the stream
    @exclusivity(unchecked) var progress = Progress()
    @exclusivity(unchecked) var answer = Answer()
    /// Time limit for the answer.
    var overdue = NIODeadline.distantFuture
    /// Number of its connection.
    var link = 0

    init(
        head: RequestHeader,
        authorization: String? = nil,
        body: [UInt8],
        answerLimit: Int,
        deadline: NIODeadline,
        waitsForService: Bool
    ) {
        self.head = head
        self.authorization = authorization
        self.body = body
        self.answerLimit = answerLimit
        self.deadline = deadline
        self.waitsForService = waitsForService
    }

    /// Resets the progress for a new stream.
    func rewind() {
        progress = Progress()
        answer = Answer()
        overdue = .distantFuture
    }

    struct Progress: Sendable {
        var stream: Int32 = 0
        var bodyOffset = 0
        /// Whether the socket has the whole request; before that, the service cannot act on it.
        var isWhollySent = false
        /// Whether the answer is complete.
        var isAnswered = false
    }

    /// Outcome of an attempt.
    enum Outcome: CallOutcome {
        /// The answer is in ``answer``.
        case answered(link: Int)
        /// The service refused its stream repeatedly.
        case untouched
        case failed(ProviderError)
        case cancelled
    }

    /// An answer, raw.
    struct Answer: Sendable, Hashable {
        var status = 0
        var id: String?
        var uniqueID: String?
        var requestID: String?
        var channelID: String?
        var explanation: String?
        var retryAfter: String?
        var body: [UInt8] = []
        /// Whether the body was longer than ``answerLimit``.
        var isCut = false

        /// The value of a header field.
        func field(_ name: String) -> String? {
            switch name {
            case "apns-id": id
            case "apns-unique-id": uniqueID
            case "apns-request-id": requestID
            case "apns-channel-id": channelID
            case "herald-explanation": explanation
            case "retry-after": retryAfter
            default: nil
            }
        }

        /// Stores a header field if the client uses it.
        mutating func note(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
            func isNamed(_ text: StaticString) -> Bool {
                name.count == text.utf8CodeUnitCount
                    && name.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
            }
            func text() -> String { String(decoding: value, as: UTF8.self) }
            switch name.count {
            case 7 where isNamed(":status"):
                status = value.count == 3 ? value.reduce(0) { $0 * 10 + Int($1) - Int(UInt8(ascii: "0")) } : 0
            case 7 where isNamed("apns-id"): id = text()
            case 14 where isNamed("apns-unique-id"): uniqueID = text()
            case 15 where isNamed("apns-request-id"): requestID = text()
            case 15 where isNamed("apns-channel-id"): channelID = text()
            case 18 where isNamed("herald-explanation"): explanation = text()
            case 11 where isNamed("retry-after"): retryAfter = text()
            default: break
            }
        }
    }
}
