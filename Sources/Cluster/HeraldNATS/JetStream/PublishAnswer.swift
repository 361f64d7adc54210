import Foundation
import NIOCore

/// Answer of a stream to a publish: `{"stream":"S","seq":7}`, or an error.
enum PublishAnswer: Hashable {
    case stored(sequence: UInt64)
    case refused(JetStreamRefusal)

    /// Reads an answer; nil if it is none.
    init?(_ bytes: ByteBuffer) {
        if let answer = bytes.withUnsafeReadableBytes(Self.scan) {
            self = answer
            return
        }
        guard let content = try? ProtocolJSON.decode(Content.self, from: Data(bytes.readableBytesView)) else {
            return nil
        }
        if let error = content.error {
            self = .refused(error.refusal)
        } else if let sequence = content.seq, sequence > 0, content.stream != nil {
            self = .stored(sequence: sequence)
        } else {
            return nil
        }
    }

    private struct Content: Decodable {
        let stream: String?
        let seq: UInt64?
        let error: APIError?
    }

    /// An ordinary answer; nil if it is anything else, or is not surely one.
    ///
    /// A JSON object in ASCII with texts, whole numbers and truth values, and an error of the same: the spelling of every server
    /// so far. All else goes to the decoder of JSON, which takes some ten times as long. A refusal is ordinary, too: a removal is
    /// refused when a newer notification came before it.
    static func scan(_ bytes: UnsafeRawBufferPointer) -> PublishAnswer? {
        var scanner = PublishAnswerScanner(bytes)
        return scanner.answer()
    }
}

/// Error object of JetStream's answers.
struct APIError: Decodable {
    let code: Int?
    let errCode: Int?
    let description: String?

    var refusal: JetStreamRefusal {
        JetStreamRefusal(status: code ?? 0, code: errCode ?? 0, description: description ?? "no reason given")
    }
}

extension PublishOutcome {
    init(answer: NATSMessage) {
        if let status = answer.status {
            self =
                answer.isNoResponders
                ? .notSent(.noResponders)
                : .unknown(NATSError(.unreadableAnswer, "the answer has the status \(status.code)"))
            return
        }
        switch PublishAnswer(answer.payload) {
        case .stored(let sequence): self = .stored(sequence: sequence)
        case .refused(let refusal): self = .refused(refusal)
        case nil: self = .unknown(NATSError(.unreadableAnswer, "the answer is none of JetStream's"))
        }
    }
}
