/// Finds the word that was most likely meant by a mistyped one.
enum NearestWord {
    /// The nearest of some words; nil if none is similar.
    static func to(_ typed: String, among words: [String]) -> String? {
        let ranked = words.map { ($0, distance(typed, $0)) }.min { $0.1 < $1.1 }
        guard let (word, distance) = ranked, distance <= max(2, word.count / 3) else { return nil }
        return word
    }

    /// The Levenshtein distance.
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (index, character) in left.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in 1...max(1, right.count) where column <= right.count {
                let change = diagonal + (character == right[column - 1] ? 0 : 1)
                diagonal = row[column]
                row[column] = min(change, row[column] + 1, row[column - 1] + 1)
            }
        }
        return row[right.count]
    }
}
