import HeraldModel

/// The stored text of a session: a line of its terms with the number of further lines, then those.
///
///     production 3600 1800000000000 7 3
///     sub 1 apps/com.example.chat/#
///     cast 1843000000000000 channels/com.example.chat/b
///     in sandbox com.example.mail
///
/// A store reads and writes it at each connection, and JSON takes Foundation 60 µs for either.
extension SessionRecord {
    package var text: String {
        var lines = subscriptions.map { "sub \($1) \($0)\n" }
        lines += (broadcasts ?? [:]).map { "cast \($1) \($0)\n" }
        lines += (environments ?? [:]).map { "in \($1.rawValue) \($0)\n" }
        let end = disconnected.map(String.init) ?? "-"
        let key = tokenKey.map { String($0) } ?? "-"
        return "\(environment.rawValue) \(expiryInterval) \(end) \(key) \(lines.count)\n" + lines.joined()
    }

    /// Reads what ``text`` writes; nil for any other text.
    package init?(text: String) {
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { String(Substring($0)) }
        }
        guard let terms = lines.first, terms.count == 5, let environment = PushEnvironment(rawValue: terms[0]),
            let expiryInterval = UInt32(terms[1]), Int(terms[4]) == lines.count - 2, lines.last == [""]
        else { return nil }
        self.init(expiryInterval: expiryInterval, environment: environment)
        disconnected = Int64(terms[2])
        tokenKey = UInt32(terms[3])
        guard disconnected != nil || terms[2] == "-", tokenKey != nil || terms[3] == "-" else { return nil }
        for line in lines.dropFirst().dropLast() {
            guard line.count == 3, add(line[0], line[1], line[2]) else { return nil }
        }
    }

    /// Adds what a line says.
    /// - Returns: Whether it says something, for the first time.
    private mutating func add(_ kind: String, _ value: String, _ name: String) -> Bool {
        switch kind {
        case "sub":
            guard let qualityOfService = UInt8(value) else { return false }
            return subscriptions.updateValue(qualityOfService, forKey: name) == nil
        case "cast":
            guard let number = UInt64(value) else { return false }
            defer { broadcasts = (broadcasts ?? [:]).merging([name: number]) { $1 } }
            return broadcasts?[name] == nil
        case "in":
            guard let environment = PushEnvironment(rawValue: value) else { return false }
            defer { environments = (environments ?? [:]).merging([name: environment]) { $1 } }
            return environments?[name] == nil
        default: return false
        }
    }
}
