package import HeraldModel

/// A moment as people write it in a search, in UTC.
package enum SearchMoment {
    package static let forms = "-2h, -30m, 2026-11-22, 2026-11-22T10:00 or 2026-11-22T10:00:00Z"

    private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]

    /// - Returns: nil for a text that is not one of ``forms``.
    package static func read(_ text: String, now: WallTime) -> WallTime? {
        if text.first == "-" { return duration(text.dropFirst()).map { now - $0 } }
        switch text.utf8.count {
        case 10: return WallTime(rfc3339: text + "T00:00:00Z")
        case 16: return WallTime(rfc3339: text + ":00Z")
        case 19: return WallTime(rfc3339: text + "Z")
        default: return WallTime(rfc3339: text)
        }
    }

    /// Reads a duration like `90s`, `30m`, `2h`, `7d` or `1w`.
    package static func duration(_ text: some StringProtocol) -> Duration? {
        guard let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
            (0...100_000).contains(count)
        else { return nil }
        return .seconds(count * unit)
    }
}
