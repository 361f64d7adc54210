import Foundation

/// Finds the words that were most likely meant by a wrong one: by meaning first, by spelling last.
enum NearestWord {
    /// Names that other tools have for the same.
    private static let meanings = [
        "address": "host", "addr": "host", "app-id": "topic", "bind": "host", "body": "alert", "bundle": "topic",
        "bundle-id": "topic", "cacert": "ca", "cafile": "ca", "development": "environment", "dir": "data",
        "directory": "data", "duration": "for", "endpoint": "service", "file": "out", "folder": "data",
        "listen": "host",
        "log": "journal", "message": "alert", "notify": "send", "output": "out", "production": "environment",
        "push": "send", "run": "serve", "sandbox": "environment", "server": "service", "start": "serve",
        "text": "alert",
        "url": "service", "verbose": "log-level",
    ]

    /// The most likely word; nil if none is similar.
    static func to(_ typed: String, among words: [String]) -> String? {
        all(to: typed, among: words).first
    }

    /// The most likely words, equally likely ones in their order; none if none is similar.
    static func all(to typed: String, among words: [String]) -> [String] {
        let typed = plain(typed)
        let same = words.filter { plain($0) == typed }
        guard same.isEmpty else { return same }
        let alike = words.filter { singular(plain($0)) == singular(typed) }
        guard alike.isEmpty else { return alike }
        if let meant = meanings[typed] ?? meanings[singular(typed)], words.contains(meant) { return [meant] }
        let parts = typed.split(separator: "-")
        let byParts = best(words) { word in
            let others = plain(word).split(separator: "-")
            guard covers(parts, others) || covers(others, parts) else { return nil }
            return abs(parts.count - others.count)
        }
        guard byParts.isEmpty else { return byParts }
        return best(words) { word in
            let distance = distance(typed, plain(word))
            return distance <= max(1, word.count / 3) ? distance : nil
        }
    }

    /// The words with the lowest rank; nil takes a word out.
    private static func best(_ words: [String], _ rank: (String) -> Int?) -> [String] {
        let ranked = words.compactMap { word in rank(word).map { (word, $0) } }
        let lowest = ranked.map(\.1).min()
        return ranked.filter { $0.1 == lowest }.map(\.0)
    }

    /// The word as it would be spelled: `apiPort`, `API_PORT` and `api-port` are the same.
    private static func plain(_ word: String) -> String {
        var text = ""
        for character in word.prefix(64) {
            if character.isUppercase, text.last?.isLowercase ?? false { text.append("-") }
            text.append(character == "_" || character == "." ? "-" : character)
        }
        return text == text.uppercased()
            ? text.lowercased() : text.split(separator: "-").joined(separator: "-").lowercased()
    }

    private static func singular(_ word: String) -> String {
        word.count > 3 && word.hasSuffix("s") ? String(word.dropLast()) : word
    }

    /// Whether each part begins one of the others: `cert` those of `certificate`, `port` those of `api-port`.
    private static func covers(_ parts: [Substring], _ others: [Substring]) -> Bool {
        !parts.isEmpty
            && parts.allSatisfy { part in
                others.contains { $0 == part || part.count >= 3 && $0.hasPrefix(part) }
            }
    }

    /// The number of characters to change, add, remove or swap with their neighbour (optimal string alignment).
    private static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        var rows = [Array(0...right.count)]
        for (index, character) in left.enumerated() {
            var row = [index + 1]
            for (column, other) in right.enumerated() {
                let change = rows[index][column] + (character == other ? 0 : 1)
                var least = min(change, rows[index][column + 1] + 1, row[column] + 1)
                if index > 0, column > 0, character == right[column - 1], left[index - 1] == other {
                    least = min(least, rows[index - 1][column - 1] + 1)
                }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
