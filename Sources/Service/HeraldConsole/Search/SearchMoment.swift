package import HeraldModel

/// A moment as people write it in a search, in UTC.
package enum SearchMoment {
    package static let forms = "-2h, -30m, 2026-11-22, 2026-11-22T10:00 or 2026-11-22T10:00:00Z"

    /// - Returns: nil for a text that is not one of ``forms``.
    package static func read(_ text: String, now: WallTime) -> WallTime? {
        if text.first == "-" { return DurationText.readWithUnit(text.dropFirst()).map { now - $0 } }
        switch text.utf8.count {
        case 10: return WallTime(rfc3339: text + "T00:00:00Z")
        case 16: return WallTime(rfc3339: text + ":00Z")
        case 19: return WallTime(rfc3339: text + "Z")
        default: return WallTime(rfc3339: text)
        }
    }
}
