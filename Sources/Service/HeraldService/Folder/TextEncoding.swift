/// The encodings in which editors write text files.
package enum TextEncoding {
    /// A text in UTF-8 without a byte order mark, which YAML 1.2 §5.2 permits and RFC 8259 §8.1 lets a reader ignore; from
    /// UTF-16 if its mark says so.
    ///
    /// Other bytes stay as they are.
    package static func plain(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { return Array(bytes.dropFirst(3)) }
        let isBig = bytes.starts(with: [0xFE, 0xFF])
        guard isBig || bytes.starts(with: [0xFF, 0xFE]), bytes.count.isMultiple(of: 2) else { return bytes }
        let units = stride(from: 2, to: bytes.count, by: 2).map { index in
            UInt16(bytes[index]) << (isBig ? 8 : 0) | UInt16(bytes[index + 1]) << (isBig ? 0 : 8)
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }
}
