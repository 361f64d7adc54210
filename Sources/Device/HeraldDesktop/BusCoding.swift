/// Encodes D-Bus values: little-endian, aligned to their size (D-Bus specification, "Marshaling").
struct BusWriter {
    private(set) var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        while !bytes.count.isMultiple(of: size) { bytes.append(0) }
    }

    mutating func byte(_ value: UInt8) {
        bytes.append(value)
    }

    mutating func uint32(_ value: UInt32) {
        align(4)
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func int32(_ value: Int32) {
        uint32(UInt32(bitPattern: value))
    }

    mutating func boolean(_ value: Bool) {
        uint32(value ? 1 : 0)
    }

    /// A text without U+0000, which D-Bus does not allow.
    mutating func string(_ value: String) {
        let text = value.utf8.filter { $0 != 0 }
        uint32(UInt32(clamping: text.count))
        bytes += text
        bytes.append(0)
    }

    mutating func signature(_ value: String) {
        bytes.append(UInt8(clamping: value.utf8.count))
        bytes += value.utf8
        bytes.append(0)
    }

    /// An array whose elements are aligned to `alignment`.
    mutating func array(alignment: Int, _ elements: (inout BusWriter) -> Void) {
        uint32(0)
        let position = bytes.count - 4
        align(alignment)
        let start = bytes.count
        elements(&self)
        var length = BusWriter()
        length.uint32(UInt32(clamping: bytes.count - start))
        bytes.replaceSubrange(position..<position + 4, with: length.bytes)
    }
}

/// Decodes D-Bus values; nil if the bytes end or are malformed.
struct BusReader {
    private let bytes: [UInt8]
    private let isBigEndian: Bool
    private(set) var position: Int

    init(_ bytes: [UInt8], isBigEndian: Bool, position: Int = 0) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        self.position = position
    }

    mutating func align(_ size: Int) {
        position += (size - position % size) % size
    }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func uint32() -> UInt32? {
        align(4)
        guard position + 4 <= bytes.count else { return nil }
        let four = bytes[position..<position + 4]
        position += 4
        let ordered = isBigEndian ? Array(four) : four.reversed()
        return ordered.reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func string() -> String? {
        guard let count = uint32() else { return nil }
        return text(count: Int(count))
    }

    mutating func signature() -> String? {
        guard let count = byte() else { return nil }
        return text(count: Int(count))
    }

    /// An array of texts.
    mutating func strings() -> [String]? {
        guard let count = uint32() else { return nil }
        let end = position + Int(count)
        guard end <= bytes.count else { return nil }
        var strings: [String] = []
        while position < end {
            guard let string = string(), position <= end else { return nil }
            strings.append(string)
        }
        return strings
    }

    private mutating func text(count: Int) -> String? {
        guard position + count < bytes.count, bytes[position + count] == 0 else { return nil }
        defer { position += count + 1 }
        return String(validating: bytes[position..<position + count], as: UTF8.self)
    }
}
