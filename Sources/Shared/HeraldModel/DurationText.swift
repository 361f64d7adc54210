/// Reads and writes durations: `90s`, `30m`, `1h`, `7d`, `1w`, `250ms`, or whole seconds without a unit.
package enum DurationText {
    /// Reads a duration from zero to a hundred years; nil for every other text.
    package static func read(_ text: some StringProtocol) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, digits.count <= 13, let number = Int64(digits) else { return nil }
        let unit: Int64
        switch text.dropFirst(digits.count) {
        case "ms": unit = 1
        case "s", "": unit = 1000
        case "m": unit = 60_000
        case "h": unit = 3_600_000
        case "d": unit = 86_400_000
        case "w": unit = 604_800_000
        default: return nil
        }
        let (milliseconds, overflow) = number.multipliedReportingOverflow(by: unit)
        guard !overflow, milliseconds <= 36_525 * 86_400_000 else { return nil }
        return .milliseconds(milliseconds)
    }

    /// Reads a duration with its unit, for what cannot be undone: a bare `7` may be meant as days.
    package static func readWithUnit(_ text: some StringProtocol) -> Duration? {
        text.last?.isLetter == true ? read(text) : nil
    }

    /// The words about a text that ``readWithUnit(_:)`` does not read, after its name and the text.
    package static func refusal(_ text: some StringProtocol) -> String {
        read(text) == nil ? "is not a duration, like 7d" : "needs a unit, like \(text)d for days"
    }

    /// Writes a duration in the largest unit that needs no fraction.
    package static func write(_ duration: Duration) -> String {
        let milliseconds = duration.wholeMilliseconds
        let units: [(String, Int64)] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)]
        let unit = units.first { milliseconds > 0 && milliseconds % $0.1 == 0 }
        if milliseconds == 0 { return "0s" }
        return unit.map { "\(milliseconds / $0.1)\($0.0)" } ?? "\(milliseconds)ms"
    }
}
