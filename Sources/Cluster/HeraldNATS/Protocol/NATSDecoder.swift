import NIOCore

/// Incremental decoder of the server's side of the protocol.
///
/// It holds at most one unfinished operation. A line or a message beyond the limits is an error as soon as it is announced.
/// After an error it reads nothing more.
struct NATSDecoder {
    /// Longest control line, in bytes; INFO has its own limit.
    private let lineBytes: Int
    private let infoBytes: Int
    /// Largest message, in bytes of headers and payload.
    private let messageBytes: Int

    private var buffer = ByteBuffer()
    /// Bytes of the buffer in which there is no end of line.
    private var searched = 0
    /// Announced message whose bytes are not all there.
    private var head: MessageHead?
    private var failure: NATSError?

    init(lineBytes: Int, infoBytes: Int, messageBytes: Int) {
        self.lineBytes = lineBytes
        self.infoBytes = infoBytes
        self.messageBytes = messageBytes
    }

    /// Bytes that wait for the rest of their operation.
    var pendingBytes: Int { buffer.readableBytes }

    mutating func append(_ bytes: ByteBuffer) {
        guard failure == nil else { return }
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.writeImmutableBuffer(bytes)
        }
    }

    /// The next whole operation; nil if more bytes are needed.
    /// - Throws: ``NATSError/Kind/protocolViolation``, ``NATSError/Kind/tooLarge``.
    mutating func next() throws(NATSError) -> ServerOperation? {
        if let failure { throw failure }
        do {
            return try decode()
        } catch {
            failure = error
            buffer = ByteBuffer()
            head = nil
            throw error
        }
    }

    private mutating func decode() throws(NATSError) -> ServerOperation? {
        if let head { return try message(head) }
        guard let end = try endOfLine() else { return nil }
        let line = buffer.withUnsafeReadableBytes { Line(UnsafeRawBufferPointer(rebasing: $0[..<end])) }
        searched = 0
        switch line.operation {
        case .message, .headedMessage:
            let hasHeaders = line.operation == .headedMessage
            let fields = buffer.withUnsafeReadableBytes { Line.fields(UnsafeRawBufferPointer(rebasing: $0[..<end])) }
            guard let head = fields.flatMap({ head($0, hasHeaders: hasHeaders, lineBytes: end + 1) }) else {
                throw violation("a message with a line that cannot be read")
            }
            guard head.totalBytes <= messageBytes else {
                throw NATSError(
                    .tooLarge,
                    "NATS announces a message of \(head.totalBytes) bytes, and the limit is \(messageBytes)"
                )
            }
            self.head = head
            return try message(head)
        case .ping, .pong, .ok:
            buffer.moveReaderIndex(forwardBy: end + 1)
            return line.operation == .ping ? .ping : line.operation == .pong ? .pong : .ok
        case .info:
            let text = buffer.readSlice(length: end + 1)?.readableBytesView.dropFirst(line.nameBytes)
            guard let text, let info = NATSServerInfo(json: text) else {
                throw violation("an INFO that cannot be read")
            }
            return .info(info)
        case .error:
            let text = buffer.readSlice(length: end + 1)?.readableBytesView.dropFirst(line.nameBytes) ?? []
            let words = String(decoding: text, as: UTF8.self)
            return .error(String(words.filter { $0 >= " " && $0 != "'" }.drop { $0 == " " }))
        case nil:
            throw violation("an operation that is none of NATS")
        }
    }

    /// Offset of the line feed that ends the first line.
    private mutating func endOfLine() throws(NATSError) -> Int? {
        let view = buffer.readableBytesView
        let begin = view.startIndex
        let end = view[(begin + searched)...].firstIndex(of: UInt8(ascii: "\n")).map { $0 - begin }
        let length = end ?? view.count
        if length > lineBytes {
            let isInfo = view.prefix(4).elementsEqual("INFO".utf8)
            guard isInfo, length <= infoBytes else { throw violation("a line that is too long") }
        }
        searched = end == nil ? length : 0
        return end
    }

    private func head(_ fields: Line.Fields, hasHeaders: Bool, lineBytes: Int) -> MessageHead? {
        // MSG <subject> <sid> [reply-to] <size>; HMSG <subject> <sid> [reply-to] <header size> <total size>
        let sizes = hasHeaders ? 2 : 1
        guard fields.count == 2 + sizes || fields.count == 3 + sizes else { return nil }
        func number(_ place: Int) -> UInt64? {
            buffer.withUnsafeReadableBytes { Decimal.read($0[fields[place]]) }
        }
        guard let subscription = number(1),
            let total = number(fields.count - 1).flatMap({ Int(exactly: $0) }), total <= Int(Int32.max),
            let header = hasHeaders ? number(fields.count - 2).flatMap({ Int(exactly: $0) }) : 0, header <= total
        else { return nil }
        return MessageHead(
            subject: fields[0],
            replyTo: fields.count == 3 + sizes ? fields[2] : nil,
            subscription: subscription,
            lineBytes: lineBytes,
            headerBytes: header,
            totalBytes: total
        )
    }

    private mutating func message(_ head: MessageHead) throws(NATSError) -> ServerOperation? {
        let whole = head.lineBytes + head.totalBytes + 2
        guard buffer.readableBytes >= whole, var bytes = buffer.readSlice(length: whole) else { return nil }
        self.head = nil
        guard bytes.getInteger(at: bytes.writerIndex - 2, as: UInt16.self) == 0x0D0A else {
            throw violation("a message that is longer than announced")
        }
        let begin = bytes.readerIndex
        func slice(_ range: Range<Int>) -> ByteBuffer {
            bytes.getSlice(at: begin + range.lowerBound, length: range.count) ?? ByteBuffer()
        }
        let subject = slice(head.subject)
        let replyTo = head.replyTo.map(slice)
        bytes.moveReaderIndex(forwardBy: head.lineBytes)
        let block = bytes.readSlice(length: head.headerBytes) ?? ByteBuffer()
        let (status, headers) = NATSHeaderBlock.read(block)
        return .message(
            NATSMessage(
                subscription: head.subscription,
                subjectBytes: subject,
                replyToBytes: replyTo,
                status: status,
                headers: NATSHeaders(lines: headers),
                payload: bytes.readSlice(length: head.totalBytes - head.headerBytes) ?? ByteBuffer()
            )
        )
    }

    private func violation(_ what: String) -> NATSError {
        NATSError(.protocolViolation, "the server sent \(what)")
    }
}

/// Announced message: places in the buffer, from its first unread byte.
private struct MessageHead {
    let subject: Range<Int>
    let replyTo: Range<Int>?
    let subscription: UInt64
    /// Length of the control line, with its line feed.
    let lineBytes: Int
    let headerBytes: Int
    /// Length of headers and payload.
    let totalBytes: Int
}
