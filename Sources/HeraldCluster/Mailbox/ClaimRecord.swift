package import NIOCore

/// The claim of a device's connection, as the bytes of a message: version 1, a byte, then the name of the node.
package struct ClaimRecord: Hashable, Sendable {
    private static let version: UInt8 = 1

    package let node: NodeName

    package init(node: NodeName) {
        self.node = node
    }

    package var bytes: ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeInteger(ClaimRecord.version)
        buffer.writeString(node.text)
        return buffer
    }

    /// - Returns: nil for a tombstone, another version, or bytes that are no record.
    package init?(_ bytes: ByteBuffer) {
        var buffer = bytes
        guard buffer.readInteger(as: UInt8.self) == ClaimRecord.version,
            let node = buffer.readString(length: buffer.readableBytes).flatMap(NodeName.init)
        else { return nil }
        self.node = node
    }
}
