import CNghttp2

/// Finds the frames in the bytes of a peer (RFC 9113 §4.1), before the library gets them.
///
/// The library does not tell of the frames that it ignores: DATA on closed streams, and the fields of PRIORITY.
struct FrameScanner {
    /// The begin of a frame.
    struct Frame {
        let header: nghttp2_frame_hd
        /// The stream that a PRIORITY frame names as its parent.
        let parent: Int32?
        /// The offset of the frame in the scanned bytes; 0 if it began in earlier ones.
        let offset: Int

        /// Whether the payload has no room for what the flags promise (RFC 9113 §4.2).
        var isTooShort: Bool {
            let flags = UInt32(header.flags)
            let isHeaders = UInt32(header.type) == NGHTTP2_HEADERS.rawValue
            guard isHeaders || UInt32(header.type) == NGHTTP2_DATA.rawValue else { return false }
            let priorityBytes = isHeaders && flags & NGHTTP2_FLAG_PRIORITY.rawValue != 0 ? 5 : 0
            return header.length < priorityBytes + (flags & NGHTTP2_FLAG_PADDED.rawValue != 0 ? 1 : 0)
        }
    }

    private static let headerBytes = 9
    private static let parentBytes = 4

    /// Bytes to skip: at first the client's preface, then the payload of a frame.
    private var skipCount = Int(NGHTTP2_CLIENT_MAGIC_LEN)
    private var last = nghttp2_frame_hd()
    /// The bytes of a header that was interrupted.
    private var head: [UInt8] = []

    /// The next frame; nil if no header ends in the rest of the bytes.
    mutating func next(in bytes: UnsafeRawBufferPointer, at position: inout Int) -> Frame? {
        let skipped = min(skipCount, bytes.count - position)
        skipCount -= skipped
        position += skipped
        let offset = position
        if head.isEmpty, let (frame, count) = Self.parse(bytes, offset) {
            position += count
            return note(frame, count)
        }
        while position < bytes.count {
            head.append(bytes[position])
            position += 1
            guard let (frame, count) = head.withUnsafeBytes({ Self.parse($0, 0) }) else { continue }
            head.removeAll(keepingCapacity: true)
            return note(Frame(header: frame.header, parent: frame.parent, offset: offset), count)
        }
        return nil
    }

    private mutating func note(_ frame: Frame, _ count: Int) -> Frame {
        last = frame.header
        skipCount = frame.header.length - (count - Self.headerBytes)
        return frame
    }

    /// The frame at an offset, and the number of its bytes that were read; nil if there are too few.
    private static func parse(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> (Frame, Int)? {
        guard bytes.count - offset >= headerBytes else { return nil }
        let first = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        let header = nghttp2_frame_hd(
            length: Int(truncatingIfNeeded: first >> 40),
            stream_id: Int32(truncatingIfNeeded: first << 8 | UInt64(bytes[offset + 8])) & .max,
            type: UInt8(truncatingIfNeeded: first >> 32),
            flags: UInt8(truncatingIfNeeded: first >> 24),
            reserved: 0
        )
        // The library refuses a PRIORITY frame of another length.
        guard UInt32(header.type) == NGHTTP2_PRIORITY.rawValue, header.length == 5 else {
            return (Frame(header: header, parent: nil, offset: offset), headerBytes)
        }
        guard bytes.count - offset >= headerBytes + parentBytes else { return nil }
        let parent = Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset + headerBytes, as: Int32.self)) & .max
        return (Frame(header: header, parent: parent, offset: offset), headerBytes + parentBytes)
    }

    /// Whether the peer has begun a header block and not ended it.
    var isInHeaderBlock: Bool {
        let type = UInt32(last.type)
        guard type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_CONTINUATION.rawValue else { return false }
        return skipCount > 0 || UInt32(last.flags) & NGHTTP2_FLAG_END_HEADERS.rawValue == 0
    }
}
