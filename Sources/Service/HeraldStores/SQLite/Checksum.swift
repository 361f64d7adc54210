/// A checksum over a row's content, which detects flipped bits in the file: SQLite has checksums in its log, but not in its
/// pages.
///
/// It multiplies and shifts eight bytes at a time. It is part of the format, and not cryptographic.
struct Checksum {
    private(set) var value: UInt64 = 0x9E37_79B9_7F4A_7C15

    mutating func add(_ word: UInt64) {
        value = (value ^ word) &* 0xD6E8_FEB8_6659_FD93
        value ^= value >> 32
    }

    /// Adds the number of bytes, then the bytes.
    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        add(UInt64(bytes.count))
        var offset = 0
        while offset + 8 <= bytes.count {
            add(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < bytes.count {
            rest = rest << 8 | UInt64(bytes[offset])
            offset += 1
        }
        add(rest)
    }
}
