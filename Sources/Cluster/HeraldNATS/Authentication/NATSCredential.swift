/// Credential that a connection presents to a server.
package enum NATSCredential: Sendable {
    case none
    case password(user: String, password: String)
    case token(String)
    /// A key alone; the server has its public half in its configuration.
    case nkey(NKey)
    /// A user's JWT and its key: the content of a `.creds` file.
    case jwt(String, NKey)

    /// Reads the content of a `.creds` file: a JWT and a seed, each between a line BEGIN and a line END.
    /// - Throws: ``NATSError/Kind/badSetting`` with what is missing.
    package init(creds text: String) throws(NATSError) {
        guard let jwt = Self.block("NATS USER JWT", of: text) else {
            throw NATSError(.badSetting, "the credentials file has no line after -----BEGIN NATS USER JWT-----")
        }
        guard let seed = Self.block("USER NKEY SEED", of: text) else {
            throw NATSError(.badSetting, "the credentials file has no line after -----BEGIN USER NKEY SEED-----")
        }
        self = .jwt(jwt, try NKey(seed: seed))
    }

    /// The line between the BEGIN and the END of a name.
    private static func block(_ name: String, of text: String) -> String? {
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmed(of: " \t") }
        guard let begin = lines.firstIndex(where: { $0.trimmed(of: "-") == "BEGIN \(name)" }), begin + 2 < lines.count,
            lines[begin + 2].trimmed(of: "-") == "END \(name)"
        else { return nil }
        return String(lines[begin + 1])
    }
}

extension Substring {
    /// The text without these characters at both ends.
    fileprivate func trimmed(of characters: String) -> Substring {
        var rest = self
        while let first = rest.first, characters.contains(first) { rest = rest.dropFirst() }
        while let last = rest.last, characters.contains(last) { rest = rest.dropLast() }
        return rest
    }
}
