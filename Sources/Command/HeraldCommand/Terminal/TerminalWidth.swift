import HeraldService

/// How many columns of a terminal a text takes: two for a wide character of East Asia or an emoji (Unicode Standard Annex
/// 11, classes W and F), none for a mark on top of another character.
enum TerminalWidth {
    /// The wide characters, by their first code points and their last.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
        0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
        0x1B000...0x1B2FF, 0x1F1E6...0x1F1FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
        0x1FA70...0x1FAFF, 0x20000...0x3FFFD,
    ]

    static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + of($1) }
    }

    /// As much from the beginning as fits, and one character at least.
    static func prefix<Text: StringProtocol>(of text: Text, columns: Int) -> Text.SubSequence {
        var room = columns
        var end = text.startIndex
        while end < text.endIndex {
            room -= of(text[end])
            guard room >= 0 || end == text.startIndex else { break }
            end = text.index(after: end)
        }
        return text[..<end]
    }

    private static func of(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        if scalar.properties.generalCategory == .nonspacingMark { return 0 }
        // Most text is narrow, and most of that is below the first wide character.
        guard scalar.value >= 0x1100 else { return 1 }
        if scalar.properties.isDefaultIgnorableCodePoint { return 0 }
        let isEmoji = scalar.properties.isEmojiPresentation || character.unicodeScalars.contains { $0.value == 0xFE0F }
        return isEmoji || wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }
}
