/// The media type of a bundle's file, from its first bytes; file names are not trusted.
enum FileType {
    /// The type; `application/octet-stream` for files that are neither pictures nor sounds.
    static func name(of bytes: [UInt8]) -> String {
        func starts(_ text: String, at offset: Int = 0) -> Bool {
            bytes.dropFirst(offset).starts(with: text.utf8)
        }
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "image/png" }
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
        if starts("caff") { return "audio/x-caf" }
        if starts("FORM") { return "audio/aiff" }
        if starts("RIFF"), starts("WAVE", at: 8) { return "audio/wav" }
        if starts("ftyp", at: 4) { return "audio/mp4" }
        let text = bytes.prefix(1024).drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 || $0 > 0x7F }
        if text.starts(with: "<?xml".utf8) || text.starts(with: "<svg".utf8) || text.starts(with: "<!--".utf8) {
            return "image/svg+xml"
        }
        return "application/octet-stream"
    }
}
