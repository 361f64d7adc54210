import HeraldModel

/// Reads the text format of `Localizable.strings`: `"key" = "value";`, with comments and escapes, in UTF-8 or UTF-16.
struct StringsFile {
    private let file: String
    private let units: [UInt16]
    private var position = 0

    /// Reads the texts by key.
    ///
    /// Of a repeated key, the last counts.
    /// - Throws: ``BundleError`` with the line.
    static func read(_ bytes: [UInt8], file: String) throws -> [TextKey: String] {
        var reader = StringsFile(file: file, units: try text(bytes, file: file))
        return try reader.texts()
    }

    private init(file: String, units: [UInt16]) {
        self.file = file
        self.units = units
    }

    /// Decodes the file; the encoding follows from a byte order mark, or from zero bytes.
    private static func text(_ bytes: [UInt8], file: String) throws -> [UInt16] {
        func wide(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) throws -> [UInt16] {
            guard bytes.count.isMultiple(of: 2) else { throw BundleError(file, "ends within a character of UTF-16") }
            return stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map { index in
                let pair = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
                return isBigEndian ? pair.0 << 8 | pair.1 : pair.1 << 8 | pair.0
            }
        }
        if bytes.starts(with: [0xFF, 0xFE]) { return try wide(bytes.dropFirst(2), isBigEndian: false) }
        if bytes.starts(with: [0xFE, 0xFF]) { return try wide(bytes.dropFirst(2), isBigEndian: true) }
        if bytes.count >= 2, bytes[0] == 0 { return try wide(bytes[...], isBigEndian: true) }
        if bytes.count >= 2, bytes[1] == 0 { return try wide(bytes[...], isBigEndian: false) }
        let plain = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        guard let text = String(validating: plain, as: UTF8.self) else {
            throw BundleError(file, "is neither UTF-8 nor UTF-16")
        }
        return Array(text.utf16)
    }

    private mutating func texts() throws -> [TextKey: String] {
        var texts: [TextKey: String] = [:]
        try skipSpace()
        // The content may be in the braces of an old-style property list.
        let isBraced = take("{")
        while true {
            try skipSpace()
            guard let unit = peek() else { break }
            if isBraced, unit == UInt16(UInt8(ascii: "}")) { break }
            let key = try word()
            try skipSpace()
            if take(";") {
                texts[TextKey(key)] = key
                continue
            }
            guard take("=") else { throw fault("expected = after \"\(key)\"") }
            try skipSpace()
            texts[TextKey(key)] = try word()
            try skipSpace()
            guard take(";") else { throw fault("expected ; after the text of \"\(key)\"") }
        }
        return texts
    }

    private mutating func word() throws -> String {
        if peek() == UInt16(UInt8(ascii: "\"")) || peek() == UInt16(UInt8(ascii: "'")) { return try quoted() }
        let start = position
        while let unit = peek(), Self.isBare(unit) { position += 1 }
        guard position > start else { throw fault("expected a text in quotes") }
        return String(decoding: units[start..<position], as: UTF16.self)
    }

    private static func isBare(_ unit: UInt16) -> Bool {
        guard let byte = UInt8(exactly: unit) else { return false }
        return byte.isASCIINameByte || "$/:".utf8.contains(byte)
    }

    private mutating func quoted() throws -> String {
        let start = position
        let quote = units[position]
        position += 1
        var text: [UInt16] = []
        while let unit = peek() {
            position += 1
            if unit == quote { return String(decoding: text, as: UTF16.self) }
            text.append(unit == UInt16(UInt8(ascii: "\\")) ? try escaped() : unit)
        }
        position = start
        throw fault("a text that begins here has no closing quote")
    }

    private mutating func escaped() throws -> UInt16 {
        guard let unit = peek() else { throw fault("ends within an escape") }
        position += 1
        switch Unicode.Scalar(unit) ?? "\u{0}" {
        case "n": return 0x0A
        case "r": return 0x0D
        case "t": return 0x09
        case "a": return 0x07
        case "b": return 0x08
        case "f": return 0x0C
        case "v": return 0x0B
        case "U", "u": return try digits(4, radix: 16, from: position)
        case "0"..."7": return try digits(3, radix: 8, from: position - 1)
        default: return unit
        }
    }

    /// Reads one to `most` digits.
    private mutating func digits(_ most: Int, radix: UInt32, from start: Int) throws -> UInt16 {
        position = start
        var value: UInt32 = 0
        while position - start < most, let unit = peek(), unit < 0x80, let scalar = Unicode.Scalar(unit),
            let digit = Character(scalar).hexDigitValue.flatMap({ UInt32(exactly: $0) }), digit < radix
        {
            value = value * radix + digit
            position += 1
        }
        guard position > start else { throw fault("expected hexadecimal digits after \\U") }
        guard radix == 16 || value < 128 else {
            throw fault("write non-ASCII characters themselves, not as octal escapes")
        }
        return UInt16(value)
    }

    private mutating func skipSpace() throws {
        while let unit = peek() {
            if let scalar = Unicode.Scalar(unit), scalar.properties.isWhitespace {
                position += 1
            } else if isNext("//") {
                while let unit = peek(), unit != 0x0A, unit != 0x0D { position += 1 }
            } else if isNext("/*") {
                let start = position
                position += 2
                while position < units.count, !isNext("*/") { position += 1 }
                guard position < units.count else {
                    position = start
                    throw fault("a comment that begins here has no end")
                }
                position += 2
            } else {
                return
            }
        }
    }

    private func isNext(_ text: String) -> Bool {
        units[position...].starts(with: text.utf16)
    }

    private mutating func take(_ text: String) -> Bool {
        guard isNext(text) else { return false }
        position += text.utf16.count
        return true
    }

    private func peek() -> UInt16? {
        position < units.count ? units[position] : nil
    }

    private func fault(_ message: String) -> BundleError {
        let line = units[..<min(position, units.count)].count { $0 == 0x0A } + 1
        return BundleError(file, "line \(line): \(message)")
    }
}
