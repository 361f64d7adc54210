/// The terms of a search: words, with or without a key before a colon.
///
/// A minus in front negates a term. A value with spaces stands in quotation marks.
struct SearchTerms: Hashable, Sendable {
    /// The longest search, in bytes, and the most terms.
    static let maximumBytes = 2000
    static let maximumTerms = 32

    struct Term: Hashable, Sendable {
        /// Nil for a word without a key.
        let key: String?
        let value: String
        let isNegated: Bool
    }

    let terms: [Term]

    /// - Throws: ``AdminError``, which says what is wrong.
    init(_ text: String) throws(AdminError) {
        guard text.utf8.count <= SearchTerms.maximumBytes else {
            throw AdminError(.badRequest, "the search is longer than \(SearchTerms.maximumBytes) bytes")
        }
        let words = try SearchTerms.words(text)
        guard words.count <= SearchTerms.maximumTerms else {
            throw AdminError(.badRequest, "the search has more than \(SearchTerms.maximumTerms) terms")
        }
        var terms: [Term] = []
        for word in words { terms.append(try SearchTerms.term(word)) }
        self.terms = terms
    }

    private static func term(_ word: Substring) throws(AdminError) -> Term {
        let isNegated = word.first == "-"
        let word = isNegated ? word.dropFirst() : word
        var key: String?
        var value = word
        if word.first != "\"", let colon = word.firstIndex(of: ":") {
            key = word[..<colon].lowercased()
            value = word[word.index(after: colon)...]
        }
        let text = value.filter { $0 != "\"" }
        guard !text.isEmpty else {
            throw AdminError(.badRequest, "'\(word)' has no value: write it after the colon, without a space")
        }
        return Term(key: key, value: text, isNegated: isNegated)
    }

    /// The words of a text; spaces between quotation marks do not end one.
    private static func words(_ text: String) throws(AdminError) -> [Substring] {
        var words: [Substring] = []
        var start: String.Index?
        var isQuoted = false
        for index in text.indices {
            let character = text[index]
            if character == "\"" { isQuoted.toggle() }
            if character.isWhitespace, !isQuoted {
                if let start { words.append(text[start..<index]) }
                start = nil
            } else if start == nil {
                start = index
            }
        }
        guard !isQuoted else { throw AdminError(.badRequest, "a quotation mark has no partner") }
        if let start { words.append(text[start...]) }
        return words
    }
}
