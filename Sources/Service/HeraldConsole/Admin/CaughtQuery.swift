import HeraldModel
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

    /// Reads the terms of a parameter, which errors name; an empty text matches everything.
    /// - Throws: ``HeraldWeb/WebRefusal``: 400.
    package init(_ text: some StringProtocol, _ name: String = "q") throws(WebRefusal) {
        guard text.utf8.count <= CaughtQuery.maximumBytes else {
            throw WebRefusal(400, "\(name) is longer than \(CaughtQuery.maximumBytes) bytes")
        }
        var terms: [Term] = []
        for word in try CaughtQuery.words(text, name) { terms.append(try CaughtQuery.term(word, name)) }
        self.terms = terms
    }

    /// Whether a message matches.
    package func matches(_ entry: CaughtEntry) -> Bool {
        terms.allSatisfy { term in
            // By code units: texts that look alike may be two tags.
            let value = term.value.utf8
            return CaughtQuery.values(of: term.key, in: entry).contains { $0.lowercased().utf8.elementsEqual(value) }
                != term.isNegated
        }
    }

    private static func values(of key: Key, in entry: CaughtEntry) -> [String] {
        switch key {
        case .id: [entry.id, entry.uniqueID].compactMap(\.self)
        case .tag: [entry.tag].compactMap(\.self)
        case .topic: [entry.topic]
        case .device: [entry.device]
        case .provider: [entry.provider].compactMap(\.self)
        case .status: [entry.status].compactMap { $0.map { "\($0)" } }
        case .reason: [entry.reason].compactMap(\.self)
        }
    }

    private static func term(_ word: Substring.UnicodeScalarView, _ name: String) throws(WebRefusal) -> Term {
        let isNegated = word.first == "-"
        let word = isNegated ? word.dropFirst() : word
        let cut = String(word.prefix(64))
        let known = Key.allCases.map { $0.rawValue + ":" }.joined(separator: " ")
        guard let colon = word.firstIndex(of: ":"), let key = Key(rawValue: String(word[..<colon]).lowercased()) else {
            throw WebRefusal(
                400,
                "'\(cut)' in \(name) is not a term like tag:login-test; the keys are \(known), and a minus before a term "
                    + "negates it"
            )
        }
        var value = word[word.index(after: colon)...]
        if value.count >= 2, value.first == "\"", value.last == "\"" { value = value.dropFirst().dropLast() }
        if let rule = CaughtQuery.rule(of: key, refusing: String(value)) {
            throw WebRefusal(400, "'\(cut)' in \(name) matches no message: \(key) is \(rule)")
        }
        return Term(key: key, value: String(value).lowercased(), isNegated: isNegated)
    }

    /// Describes the values of a key; nil if a message may have this one.
    private static func rule(of key: Key, refusing value: String) -> String? {
        switch key {
        case .id: NotificationID(value) == nil ? "an apns-id or apns-unique-id, a UUID" : nil
        case .tag: CatchTag.isWhole(value) ? nil : "1 to \(CatchTag.maximumLength) characters; Herald cuts a longer one"
        case .topic: Topic(value) == nil ? "a topic like com.example.app" : nil
        case .device: DeviceID(value) == nil ? "a device's identifier" : nil
        case .provider: value.isEmpty ? "a credential's identifier, as in GET /v1/credentials" : nil
        case .status:
            statuses.contains { "\($0)" == value }
                ? nil : "one of \(statuses.map { "\($0)" }.joined(separator: ", "))"
        case .reason:
            RefusalReason.allCases.contains { $0.reason.lowercased() == value.lowercased() }
                ? nil
                : LikelyKey.words(value, in: RefusalReason.allCases.map(\.reason)) ?? "a reason like BadDeviceToken"
        }
    }

    /// The statuses of answers: of HTTP/2, and of the binary interface with 0 for none.
    private static let statuses = Set(
        RefusalReason.allCases.flatMap { [$0.httpStatus, Int($0.binaryStatus.rawValue)] } + [0, 200]
    ).sorted()

    /// The words of a text; spaces between quotation marks do not end one.
    private static func words(
        _ text: some StringProtocol,
        _ name: String
    ) throws(WebRefusal) -> [Substring.UnicodeScalarView] {
        var isQuoted = false
        let words = Substring(text).unicodeScalars.split { scalar in
            if scalar == "\"" { isQuoted.toggle() }
            return scalar.properties.isWhitespace && !isQuoted
        }
        guard !isQuoted else { throw WebRefusal(400, "\(name) has a quotation mark without its partner") }
        return words
    }
}
