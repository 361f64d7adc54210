import HeraldModel
import NIOCore

/// One attempt at one request: what is sent, how far it came, and who waits for the answer.
///
/// It moves from connection to connection as long as no service looked at it.
///
/// Unchecked: what varies is touched on the client's event loop alone, from the moment the call is left in its inbox.
final class Call: QueuedCall, @unchecked Sendable {
    let head: HeaderBlock
    let body: [UInt8]
    /// The longest body of an answer that is kept, in bytes.
    let answerLimit: Int
    /// Until when it must have its outcome.
    let deadline: NIODeadline
    /// Whether it waits for a service that cannot be reached.
    let waitsForService: Bool

    var stage = CallStage.new
    var isCancelled = false
    var settle: ((Outcome) -> Void)?

    /// How often a connection that went on did not take it.
    var refusals = 0

    // On its stream.
    var stream: Int32 = 0
    var bodyOffset = 0
    /// Whether all of it went to the socket; before that no service can act on it.
    var isWhollySent = false
    /// Whether the answer's end has come.
    var isAnswered = false
    var answer = Answer()
    /// When its answer is overdue.
    var overdue = NIODeadline.distantFuture
    /// The connection's number, for what the answer says about the connection.
    var link = 0

    init(head: HeaderBlock, body: [UInt8], answerLimit: Int, deadline: NIODeadline, waitsForService: Bool) {
        self.head = head
        self.body = body
        self.answerLimit = answerLimit
        self.deadline = deadline
        self.waitsForService = waitsForService
    }

    /// Forgets the stream that it was on.
    func rewind() {
        stream = 0
        bodyOffset = 0
        isWhollySent = false
        isAnswered = false
        answer = Answer()
        overdue = .distantFuture
    }

    /// How an attempt ended.
    enum Outcome: CallOutcome {
        case answered(Answer, link: Int)
        /// The service did not look at it, again and again.
        case untouched
        case failed(ProviderError)
        case cancelled
    }

    /// An answer as it came.
    struct Answer: Sendable, Hashable {
        var status = 0
        var id: String?
        var uniqueID: String?
        var requestID: String?
        var channelID: String?
        var explanation: String?
        var retryAfter: String?
        var body: [UInt8] = []
        /// Whether there was more than is kept.
        var isCut = false

        /// A field by the name that the service gave it.
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

        /// Keeps a field if it is one that is asked for.
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
