/// Finds what somebody most likely meant who mistyped a word.
enum NearestWord {
    /// The one of some words that is nearest to what was typed; nil if none resembles it.
    static func to(_ typed: String, among words: [String]) -> String? {
        let ranked = words.map { ($0, distance(typed, $0)) }.min { $0.1 < $1.1 }
        guard let (word, distance) = ranked, distance <= max(2, word.count / 3) else { return nil }
        return word
    }

    /// How many letters must be added, removed or changed to turn one word into the other.
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (index, letter) in left.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in 1...max(1, right.count) where column <= right.count {
                let change = diagonal + (letter == right[column - 1] ? 0 : 1)
                diagonal = row[column]
                row[column] = min(change, row[column] + 1, row[column - 1] + 1)
            }
        }
        return row[right.count]
    }
}
