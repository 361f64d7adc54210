package import HeraldModel
package import NIOCore

/// The only answer of the binary interface: six bytes, after which it closes the connection.
package struct BinaryErrorResponse: Hashable, Sendable {
    /// The first byte.
    package static let command: UInt8 = 8
    package static let byteCount = 6

    package var status: BinaryStatus
    /// The identifier of the notification that failed; with status 10, of the last accepted one.
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

    /// Reads an error response from the front.
    /// - Returns: nil, without reading, if there are fewer than six bytes or another command.
    package mutating func readErrorResponse() -> BinaryErrorResponse? {
        guard readableBytes >= BinaryErrorResponse.byteCount,
            getInteger(at: readerIndex, as: UInt8.self) == BinaryErrorResponse.command,
            let (_, status, identifier) = readMultipleIntegers(as: (UInt8, UInt8, UInt32).self)
        else { return nil }
        return BinaryErrorResponse(BinaryStatus(rawValue: status), identifier: identifier)
    }
}
