package import HeraldModel
package import NIOCore

/// The only thing that the binary interface ever answers: six bytes, after which it closes.
package struct BinaryErrorResponse: Hashable, Sendable {
    /// The first byte.
    package static let command: UInt8 = 8
    package static let byteCount = 6

    package var status: BinaryStatus
    /// The identifier of the notification that failed; with status 10 that of the last one that did not.
    package var identifier: UInt32

    package init(_ status: BinaryStatus, identifier: UInt32) {
        self.status = status
        self.identifier = identifier
    }
}

extension ByteBuffer {
    /// Appends an error response.
    package mutating func writeErrorResponse(_ response: BinaryErrorResponse) {
        writeMultipleIntegers(BinaryErrorResponse.command, response.status.rawValue, response.identifier)
    }

    /// Takes an error response from the front.
    /// - Returns: nil if there are fewer than six bytes, or if they are none; nothing is taken then.
    package mutating func readErrorResponse() -> BinaryErrorResponse? {
        guard readableBytes >= BinaryErrorResponse.byteCount,
            getInteger(at: readerIndex, as: UInt8.self) == BinaryErrorResponse.command,
            let (_, status, identifier) = readMultipleIntegers(as: (UInt8, UInt8, UInt32).self)
        else { return nil }
        return BinaryErrorResponse(BinaryStatus(rawValue: status), identifier: identifier)
    }
}
