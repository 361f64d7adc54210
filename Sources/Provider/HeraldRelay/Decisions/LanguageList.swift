/// A device's preferred languages, as BCP 47 tags.
enum LanguageList {
    /// The most languages that count, and the longest tag.
    static let maximumCount = 20
    static let maximumLength = 64

    /// Reads tags separated by commas, or a JSON array of them: `de-CH, fr`, `["de-CH","fr"]`.
    static func read(_ text: String) -> [String] {
        let separators: Set<Character> = [",", " ", "[", "]", "\"", ";"]
        return text.split { separators.contains($0) }
            .filter { $0.utf8.count <= maximumLength }
            .prefix(maximumCount)
            .map(String.init)
    }

    /// The text for a list of preferred languages.
    ///
    /// Each language is looked up with fewer and fewer subtags (RFC 4647 §3.4), and at last the language `''`.
    static func pick(_ preferred: [String], from texts: [String: String]) -> String? {
        var folded: [String: String] = [:]
        for (language, text) in texts { folded[fold(language)] = text }
        for language in preferred {
            var tag = fold(language)
            while !tag.isEmpty {
                if let text = folded[tag] { return text }
                guard let dash = tag.lastIndex(of: "-") else { break }
                tag = String(tag[..<dash])
                // A singleton introduces the subtag behind it, and means nothing without it.
                if tag.dropLast().last == "-" { tag = String(tag.dropLast(2)) }
            }
        }
        return folded[""]
    }

    private static func fold(_ language: String) -> String {
        language.lowercased().replacing("_", with: "-")
    }
}
