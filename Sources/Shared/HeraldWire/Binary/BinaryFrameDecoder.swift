import HeraldModel
package import NIOCore

/// Decoder of the notifications in the byte stream of a provider's connection.
///
/// It has no state: incomplete frames stay in the buffer. It reports a fault as soon as the bytes show it, without
/// waiting for the rest of a token that is too long.
///
/// The order of faults in one frame: structure, token, payload. A fault has the frame's identifier, wherever that is in
/// the frame. Unknown items are ignored. A duplicate item, or one with a wrong length, is a fault of structure.
package struct BinaryFrameDecoder: Sendable {
    /// Maximum payload in bytes.
    package let payloadBytes: Int
    /// Maximum frame in bytes.
    package let frameBytes: Int

    package init(payloadBytes: Int, frameBytes: Int) {
        self.payloadBytes = payloadBytes
        self.frameBytes = frameBytes
    }

    /// Reads the next notification or fault from the front of a buffer.
    /// - Returns: nil, with the buffer unchanged, if more bytes are needed.
    package func next(_ buffer: inout ByteBuffer) -> BinaryFrame? {
        guard let command = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return nil }
        switch BinaryNotification.Form(rawValue: command) {
        case .simple: return unframed(&buffer, .simple)
        case .enhanced: return unframed(&buffer, .enhanced)
        case .framed: return framed(&buffer)
        case nil: return .fault(BinaryFault(.protocolError, identifier: nil))
        }
    }

    /// Reads one of the two older forms: token and payload, each after its length.
    private func unframed(_ buffer: inout ByteBuffer, _ form: BinaryNotification.Form) -> BinaryFrame? {
        var start = buffer.readerIndex + 1
        var (identifier, expiration): (UInt32?, UInt32?) = (nil, nil)
        if form == .enhanced {
            identifier = buffer.getInteger(at: start)
            expiration = buffer.getInteger(at: start + 4)
            guard identifier != nil, expiration != nil else { return nil }
            start += 8
        }
        func fault(_ status: BinaryStatus) -> BinaryFrame {
            .fault(BinaryFault(status, identifier: identifier, isAnswered: form == .enhanced))
        }
        guard let tokenLength = buffer.getInteger(at: start, as: UInt16.self) else { return nil }
        if let status = Self.check(tokenLength: Int(tokenLength)) { return fault(status) }
        let lengthIndex = start + 2 + DeviceToken.byteCount
        guard let payloadLength = buffer.getInteger(at: lengthIndex, as: UInt16.self) else { return nil }
        if let status = check(payloadLength: Int(payloadLength)) { return fault(status) }
        guard let token = Self.token(in: buffer, at: start + 2),
            let payload = buffer.getBytes(at: lengthIndex + 2, length: Int(payloadLength))
        else { return nil }
        buffer.moveReaderIndex(to: lengthIndex + 2 + Int(payloadLength))
        return .notification(
            BinaryNotification(
                form: form,
                identifier: identifier,
                expiration: expiration,
                token: token,
                payload: payload
            )
        )
    }

    private func framed(_ buffer: inout ByteBuffer) -> BinaryFrame? {
        let start = buffer.readerIndex + 5
        guard let length = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt32.self) else { return nil }
        guard let length = Int(exactly: length), length <= frameBytes else {
            return .fault(BinaryFault(.protocolError, identifier: nil))
        }
        guard buffer.writerIndex - start >= length else { return nil }
        let items = Items(buffer, from: start, to: start + length)
        guard items.isWellFormed else {
            return .fault(BinaryFault(.protocolError, identifier: items.identifier))
        }
        let status = Self.check(tokenLength: items.token?.count ?? 0) ?? check(payloadLength: items.payload?.count ?? 0)
        guard status == nil, let token = items.token.flatMap({ Self.token(in: buffer, at: $0.lowerBound) }),
            let payload = items.payload.flatMap({ buffer.getBytes(at: $0.lowerBound, length: $0.count) })
        else {
            return .fault(BinaryFault(status ?? .protocolError, identifier: items.identifier))
        }
        buffer.moveReaderIndex(to: start + length)
        return .notification(
            BinaryNotification(
                form: .framed,
                identifier: items.identifier,
                expiration: items.expiration,
                priority: items.priority,
                token: token,
                payload: payload
            )
        )
    }

    private static func check(tokenLength: Int) -> BinaryStatus? {
        switch tokenLength {
        case 0: .missingDeviceToken
        case DeviceToken.byteCount: nil
        default: .invalidTokenSize
        }
    }

    private func check(payloadLength: Int) -> BinaryStatus? {
        switch payloadLength {
        case 0: .missingPayload
        case ...payloadBytes: nil
        default: .invalidPayloadSize
        }
    }

    private static func token(in buffer: ByteBuffer, at index: Int) -> PushToken? {
        guard let first = buffer.getInteger(at: index, as: UInt64.self),
            let second = buffer.getInteger(at: index + 8, as: UInt64.self),
            let third = buffer.getInteger(at: index + 16, as: UInt64.self),
            let fourth = buffer.getInteger(at: index + 24, as: UInt64.self)
        else { return nil }
        return PushToken(DeviceToken(words: (first, second, third, fourth)))
    }
}

/// The positions of the items in one frame.
private struct Items {
    private(set) var token: Range<Int>?
    private(set) var payload: Range<Int>?
    private(set) var identifier: UInt32?
    private(set) var expiration: UInt32?
    private(set) var priority: Priority?
    private(set) var isWellFormed = true

    init(_ buffer: ByteBuffer, from start: Int, to end: Int) {
        var position = start
        while position < end {
            guard end - position >= 3, let number = buffer.getInteger(at: position, as: UInt8.self),
                let length = buffer.getInteger(at: position + 1, as: UInt16.self).map(Int.init),
                length <= end - position - 3
            else {
                isWellFormed = false
                return
            }
            position += 3
            // Reading goes on after a fault, because the identifier may follow.
            if !take(number, position..<position + length, buffer) { isWellFormed = false }
            position += length
        }
    }

    /// - Returns: false if the item is a duplicate or has a wrong length or value.
    private mutating func take(_ number: UInt8, _ range: Range<Int>, _ buffer: ByteBuffer) -> Bool {
        switch number {
        case BinaryItem.token:
            guard token == nil else { return false }
            token = range
        case BinaryItem.payload:
            guard payload == nil else { return false }
            payload = range
        case BinaryItem.identifier:
            guard identifier == nil, range.count == 4 else { return false }
            identifier = buffer.getInteger(at: range.lowerBound)
        case BinaryItem.expiration:
            guard expiration == nil, range.count == 4 else { return false }
            expiration = buffer.getInteger(at: range.lowerBound)
        case BinaryItem.priority:
            guard priority == nil, range.count == 1,
                let value = buffer.getInteger(at: range.lowerBound, as: UInt8.self),
                let known = Priority(rawValue: value), known != .low
            else { return false }
            priority = known
        default:
            break
        }
        return true
    }
}
