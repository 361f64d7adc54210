import Foundation
import NIOCore

/// Answer of a stream to a publish: `{"stream":"S","seq":7}`, or an error.
enum PublishAnswer: Hashable {
    case stored(sequence: UInt64)
    case refused(JetStreamRefusal)

    /// Reads an answer; nil if it is none.
    init?(_ bytes: ByteBuffer) {
        if let sequence = bytes.withUnsafeReadableBytes(Self.scan) {
            self = .stored(sequence: sequence)
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

    /// The sequence of an ordinary acknowledgement; nil if the answer is anything else, or is not surely one.
    ///
    /// JSON of one level, in ASCII, with texts, whole numbers and truth values: the spelling of every server so far. All else
    /// goes to the decoder of JSON, which takes some ten times as long.
    static func scan(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        var scanner = AcknowledgementScanner(bytes)
        return scanner.sequence()
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
    init(answer: Delivery) {
        if let status = answer.status {
            let isNobody = status.code == 503 && answer.payload.readableBytes == 0
            self =
                isNobody
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

/// Scanner of an acknowledgement's flat JSON object.
private struct AcknowledgementScanner {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func sequence() -> UInt64? {
        var sequence: UInt64?
        var hasStream = false
        guard skip(UInt8(ascii: "{")) else { return nil }
        repeat {
            guard let name = text(), skip(UInt8(ascii: ":")) else { return nil }
            if isNamed(name, "seq") {
                // A second value would be a matter of taste.
                guard sequence == nil, let number = number() else { return nil }
                sequence = number
            } else if isNamed(name, "stream") {
                guard !hasStream, text() != nil else { return nil }
                hasStream = true
            } else {
                guard !isNamed(name, "error"), skipValue() else { return nil }
            }
        } while skip(UInt8(ascii: ","))
        guard skip(UInt8(ascii: "}")), hasStream, let sequence, sequence > 0 else { return nil }
        skipSpace()
        return place == bytes.count ? sequence : nil
    }

    private mutating func skipSpace() {
        while place < bytes.count, [0x20, 0x0A, 0x0D, 0x09].contains(bytes[place]) { place += 1 }
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        skipSpace()
        guard place < bytes.count, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    /// A text of printable ASCII without escapes.
    private mutating func text() -> Range<Int>? {
        guard skip(UInt8(ascii: "\"")) else { return nil }
        let begin = place
        while place < bytes.count {
            switch bytes[place] {
            case UInt8(ascii: "\""):
                place += 1
                return begin..<(place - 1)
            case UInt8(ascii: "\\"), ..<0x20, 0x7F...: return nil
            default: place += 1
            }
        }
        return nil
    }

    private mutating func number() -> UInt64? {
        skipSpace()
        let begin = place
        while place < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[place]) { place += 1 }
        let digits = bytes[begin..<place]
        guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
        return Decimal.read(digits)
    }

    private mutating func skipValue() -> Bool {
        skipSpace()
        guard place < bytes.count else { return false }
        switch bytes[place] {
        case UInt8(ascii: "\""): return text() != nil
        case UInt8(ascii: "t"): return skipWord("true")
        case UInt8(ascii: "f"): return skipWord("false")
        case UInt8(ascii: "n"): return skipWord("null")
        default: return number() != nil
        }
    }

    private mutating func skipWord(_ word: StaticString) -> Bool {
        let end = place + word.utf8CodeUnitCount
        guard end <= bytes.count, isNamed(place..<end, word) else { return false }
        place = end
        return true
    }

    private func isNamed(_ range: Range<Int>, _ name: StaticString) -> Bool {
        range.count == name.utf8CodeUnitCount
            && bytes[range].elementsEqual(UnsafeRawBufferPointer(start: name.utf8Start, count: range.count))
    }
}
