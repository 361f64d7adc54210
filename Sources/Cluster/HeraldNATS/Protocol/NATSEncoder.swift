import NIOCore

/// Encoder of the client's side of the protocol. Subjects and headers are checked before; see ``SubjectRules``.
extension ByteBuffer {
    static let ping: StaticString = "PING\r\n"
    static let pong: StaticString = "PONG\r\n"

    /// Writes PUB, or HPUB if there are headers.
    mutating func writePublish(_ publish: OutgoingPublish, replyTo: ReplySubject) {
        let headerBytes = publish.headerBytes
        writeStaticString(headerBytes > 0 ? "HPUB " : "PUB ")
        writeString(publish.subject)
        switch replyTo {
        case .none: break
        case .subject(let subject):
            writeStaticString(" ")
            writeString(subject)
        case .inbox(let prefix, let token):
            writeStaticString(" ")
            writeImmutableBuffer(prefix)
            writeHexadecimal(token)
        }
        if headerBytes > 0 {
            writeStaticString(" ")
            writeDecimal(UInt64(headerBytes))
        }
        writeStaticString(" ")
        writeDecimal(UInt64(headerBytes + publish.payload.readableBytes))
        writeStaticString("\r\n")
        if headerBytes > 0 { writeHeaders(of: publish) }
        writeImmutableBuffer(publish.payload)
        writeStaticString("\r\n")
    }

    private mutating func writeHeaders(of publish: OutgoingPublish) {
        writeStaticString("NATS/1.0\r\n")
        if let sequence = publish.expectedLastSubjectSequence {
            writeStaticString(OutgoingPublish.expectedName)
            writeDecimal(sequence)
            writeStaticString("\r\n")
        }
        if let seconds = publish.timeToLiveSeconds {
            writeStaticString(OutgoingPublish.timeToLiveName)
            writeDecimal(seconds)
            writeStaticString("\r\n")
        }
        writeImmutableBuffer(publish.headers.lines)
        writeStaticString("\r\n")
    }

    mutating func writeSubscribe(_ subject: String, number: UInt64) {
        writeStaticString("SUB ")
        writeString(subject)
        writeStaticString(" ")
        writeDecimal(number)
        writeStaticString("\r\n")
    }

    mutating func writeUnsubscribe(_ number: UInt64) {
        writeStaticString("UNSUB ")
        writeDecimal(number)
        writeStaticString("\r\n")
    }

    mutating func writeConnect(_ json: some Sequence<UInt8>) {
        writeStaticString("CONNECT ")
        writeBytes(json)
        writeStaticString("\r\n")
    }

    mutating func writeDecimal(_ number: UInt64) {
        writeDigits(number, base: 10)
    }

    mutating func writeHexadecimal(_ number: UInt64) {
        writeDigits(number, base: 16)
    }

    /// Writes a number without leading zeros; small letters above 9.
    private mutating func writeDigits(_ number: UInt64, base: UInt64) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: 20) { space in
            var rest = number
            var count = 0
            repeat {
                let digit = UInt8(truncatingIfNeeded: rest % base)
                space[count] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
                rest /= base
                count += 1
            } while rest > 0
            var written = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
            written.reverse()
            return count
        }
    }
}

/// Subject for the answer of a message.
enum ReplySubject {
    case none
    case subject(String)
    /// The connection's inbox: its prefix, and the token of the request.
    case inbox(ByteBuffer, UInt64)
}

/// Message to publish.
///
/// The two conditions of JetStream that every write carries are numbers, so that nobody builds strings.
struct OutgoingPublish {
    static let expectedName: StaticString = "Nats-Expected-Last-Subject-Sequence: "
    static let timeToLiveName: StaticString = "Nats-TTL: "

    var subject: String
    var payload: ByteBuffer
    var headers = NATSHeaders()
    var expectedLastSubjectSequence: UInt64?
    var timeToLiveSeconds: UInt64?

    /// Length of the header block; 0: none.
    var headerBytes: Int {
        var count = headers.lines.readableBytes
        if let expectedLastSubjectSequence {
            count += Self.expectedName.utf8CodeUnitCount + Self.digits(expectedLastSubjectSequence) + 2
        }
        if let timeToLiveSeconds {
            count += Self.timeToLiveName.utf8CodeUnitCount + Self.digits(timeToLiveSeconds) + 2
        }
        // The version, its line end, and the empty line.
        return count > 0 ? count + NATSHeaderBlock.version.utf8CodeUnitCount + 4 : 0
    }

    private static func digits(_ number: UInt64) -> Int {
        var rest = number
        var count = 1
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        return count
    }
}
