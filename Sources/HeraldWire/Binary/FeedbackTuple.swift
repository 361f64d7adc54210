package import HeraldModel
package import NIOCore

/// One dead token, as the feedback service reports it ("The Feedback Service" in the Local and Remote Notification
/// Programming Guide).
package struct FeedbackTuple: Hashable, Sendable {
    /// The longest token that a reader takes, in bytes.
    package static let maximumTokenBytes = 100

    /// UNIX seconds: when the app was found to be gone from the device.
    package var time: UInt32
    /// The token's bytes, of whatever number the service has.
    package var token: [UInt8]

    package init(time: UInt32, token: [UInt8]) {
        self.time = time
        self.token = token
    }

    /// A tuple for a token of Herald's; a moment before 1970 or after 2106 becomes the nearest that there is room for.
    package init(time: WallTime, token: DeviceToken) {
        self.init(time: UInt32(clamping: time.seconds), token: token.bytes)
    }
}

/// Bytes that are no feedback tuple.
package struct FeedbackFault: Error, Hashable, Sendable {
    /// What is wrong, for people.
    package let message: String
}

extension ByteBuffer {
    /// Appends a tuple.
    package mutating func writeFeedbackTuple(_ tuple: FeedbackTuple) {
        writeMultipleIntegers(tuple.time, UInt16(clamping: tuple.token.count))
        writeBytes(tuple.token)
    }

    /// Takes a tuple from the front.
    /// - Returns: nil if it is not complete; nothing is taken then.
    /// - Throws: ``FeedbackFault`` if its token is empty or longer than any is.
    package mutating func readFeedbackTuple() throws(FeedbackFault) -> FeedbackTuple? {
        guard let time = getInteger(at: readerIndex, as: UInt32.self),
            let length = getInteger(at: readerIndex + 4, as: UInt16.self).map(Int.init)
        else { return nil }
        guard (1...FeedbackTuple.maximumTokenBytes).contains(length) else {
            throw FeedbackFault(message: "a token of \(length) bytes, which no token has")
        }
        guard let token = getBytes(at: readerIndex + 6, length: length) else { return nil }
        moveReaderIndex(forwardBy: 6 + length)
        return FeedbackTuple(time: time, token: token)
    }
}
