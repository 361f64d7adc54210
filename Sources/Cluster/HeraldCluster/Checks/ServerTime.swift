import Foundation
package import HeraldModel

extension WallTime {
    /// Reads a time of a NATS server: RFC 3339 with up to nine digits of a second's fraction.
    package init?(serverTime text: String) {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: false)
        let parts = text.split(separator: ".", maxSplits: 1)
        guard parts.count == 2 else {
            guard let date = try? style.parse(text) else { return nil }
            self.init(date: date)
            return
        }
        let digits = parts[1].prefix { $0.isASCII && $0.isNumber }
        guard let whole = try? style.parse("\(parts[0])\(parts[1].dropFirst(digits.count))"),
            let milliseconds = Int64(digits.prefix(3).padding(toLength: 3, withPad: "0", startingAt: 0))
        else { return nil }
        self = WallTime(date: whole) + .milliseconds(milliseconds)
    }

    private init(date: Date) {
        self.init(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
    }
}
