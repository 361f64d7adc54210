/// A span of time as people write it: `90s`, `30m`, `1h`, `7d`, `250ms`, or whole seconds without a unit.
enum DurationText {
    /// Reads a span of time; nothing is negative, and nothing is longer than a hundred years.
    /// - Returns: nil for every other text.
    static func read(_ text: some StringProtocol) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, digits.count <= 13, let number = Int64(digits) else { return nil }
        let unit: Int64
        switch text.dropFirst(digits.count) {
        case "ms": unit = 1
        case "s", "": unit = 1000
        case "m": unit = 60_000
        case "h": unit = 3_600_000
        case "d": unit = 86_400_000
        default: return nil
        }
        let (milliseconds, overflow) = number.multipliedReportingOverflow(by: unit)
        guard !overflow, milliseconds <= 36_525 * 86_400_000 else { return nil }
        return .milliseconds(milliseconds)
    }
}
