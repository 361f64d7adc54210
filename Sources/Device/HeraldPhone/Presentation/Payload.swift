package import HeraldJSON

extension JSON.Rules {
    /// The rules for payloads, which are as lenient as the service.
    ///
    /// The depth leaves room for what is around a payload in the agent's own messages and files.
    package static let payload = JSON.Rules(isLenient: true, maximumDepth: 500)
}

extension JSON {
    /// The range of times in UNIX seconds: the years 1 to 9999 (RFC 3339).
    static let times = -62_135_596_800.0...253_402_300_799.0

    /// Whether this is the number 1, which means yes in payloads.
    package var isOne: Bool { double == 1 }

    /// The time in UNIX seconds; nil for other types, and for a time that no calendar has, like one in milliseconds.
    package var time: Double? {
        double.flatMap { Self.times.contains($0) ? $0 : nil }
    }

    /// Whether this is a number from 0 to 1.
    var isShare: Bool { double.map { (0...1).contains($0) } ?? false }

    /// The number of a badge; nil for other types, and for what an icon cannot show.
    package var badge: Int? {
        integer.flatMap { (0...PhoneAction.highestBadge).contains($0) ? $0 : nil }
    }

    /// The value as an argument of a format string; a number as it was written.
    package var argument: String {
        switch self {
        case .string(let text): text
        case .number(let number): number.text
        case .boolean(let truth): truth ? "1" : "0"
        case .null, .array, .object: ""
        }
    }
}
