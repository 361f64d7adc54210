/// Finds the key that a misspelt one most likely means.
package enum LikelyKey {
    /// The key that was probably meant: equal without case and separators, or with one or two typing errors.
    package static func to(_ key: String, in keys: some Collection<String>) -> String? {
        // The effort grows with the square of the length.
        guard key.count <= 40 else { return nil }
        let plain = folded(key)
        if let same = keys.first(where: { folded($0) == plain }) { return same }
        let slips = keys.map { (key: $0, count: distance(plain, folded($0))) }
            .filter { $0.count <= ($0.key.count > 7 ? 2 : 1) }
        return slips.min { ($0.count, $0.key) < ($1.count, $1.key) }?.key
    }

    /// The same as a question; nil if no key is likely.
    package static func words(_ key: String, in keys: some Collection<String>) -> String? {
        to(key, in: keys).map { "did you mean `\($0)`?" }
    }

    private static func folded(_ key: String) -> [Character] {
        key.lowercased().filter { $0 != "-" && $0 != "_" && $0 != " " }.map { $0 }
    }

    /// The edit distance: insertions, deletions, substitutions and transpositions of neighbours.
    package static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var before: [Int] = []
        var last = Array(0...right.count)
        for row in 0..<left.count {
            var next = [row + 1]
            for column in 0..<right.count {
                var least = min(
                    last[column] + (left[row] == right[column] ? 0 : 1),
                    last[column + 1] + 1,
                    next[column] + 1
                )
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    least = min(least, before[column - 1] + 1)
                }
                next.append(least)
            }
            (before, last) = (last, next)
        }
        return last[right.count]
    }
}
