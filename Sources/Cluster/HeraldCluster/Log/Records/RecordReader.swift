package import HeraldModel
package import NIOCore

/// Reads the fields of a record; every field throws if the bytes are not its form.
package struct RecordReader {
    private var bytes: ByteBuffer
    private let kind: StaticString

    init(_ bytes: ByteBuffer, kind: StaticString) {
        self.bytes = bytes
        self.kind = kind
    }

    /// The error for bytes that are not such a record.
    package var damaged: RecordError { .damaged(kind: "\(kind)") }

    /// The value of a field, unless it is nil.
    package func valid<Value>(_ value: Value?) throws(RecordError) -> Value {
        guard let value else { throw damaged }
        return value
    }

    package mutating func integer<Integer: FixedWidthInteger>(
        _: Integer.Type = Integer.self
    ) throws(RecordError) -> Integer {
        try valid(bytes.readInteger())
    }

    /// Flags; only `known` bits may be set.
    package mutating func flags(known: UInt8) throws(RecordError) -> UInt8 {
        let flags = try integer(UInt8.self)
        return try valid(flags & ~known == 0 ? flags : nil)
    }

    package mutating func time() throws(RecordError) -> WallTime {
        WallTime(milliseconds: try integer())
    }

    package mutating func id() throws(RecordError) -> NotificationID {
        NotificationID(high: try integer(), low: try integer())
    }

    /// A text of at most 255 bytes, after its length.
    package mutating func text() throws(RecordError) -> String {
        let count = Int(try integer(UInt8.self))
        let slice = try valid(bytes.readSlice(length: count))
        return try valid(String(validating: slice.readableBytesView, as: UTF8.self))
    }

    /// Bytes after their length, without a copy.
    package mutating func block() throws(RecordError) -> ByteBuffer {
        let count = Int(try integer(UInt32.self))
        return try valid(bytes.readSlice(length: count))
    }

    /// All bytes that are left, without a copy.
    package mutating func remaining() -> ByteBuffer {
        defer { bytes.moveReaderIndex(to: bytes.writerIndex) }
        return bytes.slice()
    }

    /// All bytes that are left.
    package mutating func rest() -> [UInt8] {
        defer { bytes.moveReaderIndex(to: bytes.writerIndex) }
        return Array(bytes.readableBytesView)
    }

    /// - Throws: If bytes are left.
    package func finish() throws(RecordError) {
        guard bytes.readableBytes == 0 else { throw damaged }
    }
}
