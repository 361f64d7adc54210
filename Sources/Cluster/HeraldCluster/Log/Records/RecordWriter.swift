package import HeraldModel
package import NIOCore

/// Writes the fields of a record.
package struct RecordWriter {
    package static let version: UInt8 = 1

    package private(set) var bytes: ByteBuffer

    /// `capacity` is about the bytes of the record: a record that fits is written without moving.
    init(capacity: Int) {
        bytes = ByteBufferAllocator().buffer(capacity: capacity)
        bytes.writeInteger(RecordWriter.version)
    }

    package mutating func integer(_ value: some FixedWidthInteger) { bytes.writeInteger(value) }

    package mutating func time(_ time: WallTime) { bytes.writeInteger(time.milliseconds) }

    package mutating func id(_ id: NotificationID) { bytes.writeMultipleIntegers(id.high, id.low) }

    /// A text of at most 255 bytes, after its length.
    package mutating func text(_ text: String) {
        let bytes = text.utf8.prefix(Int(UInt8.max))
        integer(UInt8(bytes.count))
        self.bytes.writeBytes(bytes)
    }

    /// Bytes after their length.
    package mutating func block(_ bytes: ByteBuffer) {
        integer(UInt32(clamping: bytes.readableBytes))
        buffer(bytes)
    }

    /// Bytes that end the record.
    package mutating func buffer(_ bytes: ByteBuffer) { self.bytes.writeImmutableBuffer(bytes) }

    /// Bytes that end the record.
    package mutating func rest(_ bytes: some Sequence<UInt8>) { self.bytes.writeBytes(bytes) }
}
