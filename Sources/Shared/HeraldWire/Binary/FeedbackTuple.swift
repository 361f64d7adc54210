package import HeraldModel
package import NIOCore

/// An invalid token, as the feedback service reports it ("The Feedback Service" in the Local and Remote Notification
/// Programming Guide).
package struct FeedbackTuple: Hashable, Sendable {
    /// Maximum length of a token that a reader accepts, in bytes.
    package static let maximumTokenBytes = PushToken.maximumByteCount

    /// UNIX seconds: when the app was found removed from the device.
    package var time: UInt32
    /// The token; its length depends on the service.
    package var token: [UInt8]

    package init(time: UInt32, token: [UInt8]) {
        self.time = time
        self.token = token
    }

    /// Makes the tuple of a Herald token; clamps the time to 1970 to 2106.
    package init(time: WallTime, token: DeviceToken) {
        self.init(time: UInt32(clamping: time.seconds), token: token.bytes)
    }
}

/// Malformed bytes of a feedback list.
package struct FeedbackFault: Error, Hashable, Sendable {
    /// The problem in words.
    package let message: String
}

extension ByteBuffer {
    /// Appends a tuple.
    package mutating func writeFeedbackTuple(_ tuple: FeedbackTuple) {
        writeMultipleIntegers(tuple.time, UInt16(clamping: tuple.token.count))
        writeBytes(tuple.token)
    }

    /// Reads a tuple from the front.
    /// - Returns: nil, without reading, if it is not complete.
    /// - Throws: ``FeedbackFault`` if its token is empty or too long.
    package mutating func readFeedbackTuple() throws(FeedbackFault) -> FeedbackTuple? {
        guard let time = getInteger(at: readerIndex, as: UInt32.self),
            let length = getInteger(at: readerIndex + 4, as: UInt16.self).map(Int.init)
        else { return nil }
        guard (1...FeedbackTuple.maximumTokenBytes).contains(length) else {
            throw FeedbackFault(
                message: "a token of \(length) bytes: a token has 1 to \(FeedbackTuple.maximumTokenBytes)"
            )
        }
        guard let token = getBytes(at: readerIndex + 6, length: length) else { return nil }
        moveReaderIndex(forwardBy: 6 + length)
        return FeedbackTuple(time: time, token: token)
    }
}
