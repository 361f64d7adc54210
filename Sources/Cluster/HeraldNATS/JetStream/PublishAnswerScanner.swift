/// Scanner of the answers that ``PublishAnswer/scan(_:)`` takes.
struct PublishAnswerScanner {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func answer() -> PublishAnswer? {
        var sequence: UInt64?
        var hasStream = false
        var refusal: JetStreamRefusal?
        let isWhole = object { scanner, name in
            if scanner.isNamed(name, "seq") {
                // A second value would be a matter of taste.
                guard sequence == nil, let number = scanner.number() else { return false }
                sequence = number
            } else if scanner.isNamed(name, "stream") {
                guard !hasStream, scanner.text() != nil else { return false }
                hasStream = true
            } else if scanner.isNamed(name, "error") {
                guard refusal == nil, let found = scanner.refusal() else { return false }
                refusal = found
            } else {
                return scanner.skipValue()
            }
            return true
        }
        skipSpace()
        guard isWhole, place == bytes.count else { return nil }
        if let refusal { return .refused(refusal) }
        guard hasStream, let sequence, sequence > 0 else { return nil }
        return .stored(sequence: sequence)
    }

    private mutating func refusal() -> JetStreamRefusal? {
        var status: Int?
        var code: Int?
        var description: Range<Int>?
        let isWhole = object { scanner, name in
            if scanner.isNamed(name, "code") {
                guard status == nil, let number = scanner.smallNumber() else { return false }
                status = number
            } else if scanner.isNamed(name, "err_code") {
                guard code == nil, let number = scanner.smallNumber() else { return false }
                code = number
            } else if scanner.isNamed(name, "description") {
                guard description == nil, let text = scanner.text() else { return false }
                description = text
            } else {
                return scanner.skipValue()
            }
            return true
        }
        guard isWhole, let status, let code, let description else { return nil }
        return JetStreamRefusal(
            status: status,
            code: code,
            description: String(decoding: bytes[description], as: UTF8.self)
        )
    }

    /// Scans an object; `member` takes the value of each name, and says whether it could.
    private mutating func object(_ member: (inout Self, _ name: Range<Int>) -> Bool) -> Bool {
        guard skip(UInt8(ascii: "{")) else { return false }
        repeat {
            guard let name = text(), skip(UInt8(ascii: ":")), member(&self, name) else { return false }
        } while skip(UInt8(ascii: ","))
        return skip(UInt8(ascii: "}"))
    }

    private mutating func smallNumber() -> Int? { number().flatMap(Int.init(exactly:)) }

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
