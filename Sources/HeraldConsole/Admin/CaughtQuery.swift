package import HeraldWeb

/// A question for caught messages: terms like `tag:login-test -status:200`, all of which must hold.
///
/// A term is a key, a colon and the whole value, in quotation marks if it has spaces; upper and lower case are the same. A
/// minus in front turns it around.
package struct CaughtQuery: Hashable, Sendable {
    /// The longest question, in bytes.
    static let maximumBytes = 512

    private enum Key: String, CaseIterable {
        case id, tag, topic, device, provider, status, reason
    }

    private struct Term: Hashable {
        let key: Key
        let value: String
        let isNegated: Bool
    }

    private let terms: [Term]

    /// Reads a question; an empty one matches everything.
    /// - Parameters:
    ///   - text: The terms.
    ///   - name: The parameter that has them, for errors.
    /// - Throws: ``HeraldWeb/WebRefusal``: 400.
    package init(_ text: some StringProtocol, _ name: String = "q") throws(WebRefusal) {
        guard text.utf8.count <= CaughtQuery.maximumBytes else {
            throw WebRefusal(400, "\(name) is longer than \(CaughtQuery.maximumBytes) bytes")
        }
        var terms: [Term] = []
        for word in try CaughtQuery.words(Substring(text), name) { terms.append(try CaughtQuery.term(word, name)) }
        self.terms = terms
    }

    /// Whether a message matches.
    package func matches(_ entry: CaughtEntry) -> Bool {
        terms.allSatisfy { term in
            CaughtQuery.values(of: term.key, in: entry).contains { $0.lowercased() == term.value } != term.isNegated
        }
    }

    private static func values(of key: Key, in entry: CaughtEntry) -> [String] {
        switch key {
        case .id: [entry.id, entry.uniqueID].compactMap(\.self)
        case .tag: [entry.tag ?? ""]
        case .topic: [entry.topic]
        case .device: [entry.device]
        case .provider: [entry.provider ?? ""]
        case .status: [entry.status.map { "\($0)" } ?? ""]
        case .reason: [entry.reason ?? ""]
        }
    }

    private static func term(_ word: Substring, _ name: String) throws(WebRefusal) -> Term {
        let isNegated = word.first == "-"
        let word = isNegated ? word.dropFirst() : word
        let known = Key.allCases.map { $0.rawValue + ":" }.joined(separator: " ")
        guard let colon = word.firstIndex(of: ":"), let key = Key(rawValue: word[..<colon].lowercased()) else {
            throw WebRefusal(
                400,
                "'\(word.prefix(64))' in \(name) is not a term like tag:login-test; the keys are \(known), and a minus "
                    + "before a term negates it"
            )
        }
        var value = word[word.index(after: colon)...]
        if value.count >= 2, value.first == "\"", value.last == "\"" { value = value.dropFirst().dropLast() }
        return Term(key: key, value: value.lowercased(), isNegated: isNegated)
    }

    /// The words of a text; spaces between quotation marks do not end one.
    private static func words(_ text: Substring, _ name: String) throws(WebRefusal) -> [Substring] {
        var words: [Substring] = []
        var start: Substring.Index?
        var isQuoted = false
        for index in text.indices {
            let character = text[index]
            if character == "\"" { isQuoted.toggle() }
            if character.isWhitespace, !isQuoted {
                if let begin = start { words.append(text[begin..<index]) }
                start = nil
            } else if start == nil {
                start = index
            }
        }
        guard !isQuoted else { throw WebRefusal(400, "\(name) has a quotation mark without its partner") }
        if let begin = start { words.append(text[begin...]) }
        return words
    }
}
