package import HeraldModel

/// A bad day on demand: what is to happen, to which requests, and for how long.
///
/// A drill hits only notifications that have passed every check: what is wrong with a request is said as on any day.
package struct Drill: Hashable, Sendable {
    /// What happens to a request that is hit.
    package enum Kind: Hashable, Sendable {
        /// It is refused; without a time of its own, `retry-after` is the usual one of the reason.
        case refuse(Rejection, retryAfter: Duration?)
        /// It is done at once, and its answer waits.
        case latency(ClosedRange<Duration>)
        /// It is never answered; what was accepted is stored or delivered all the same, anything else is lost.
        case silence(isAccepted: Bool)
        /// GOAWAY: it and what came before it is answered, what comes after it on the connection is not looked at.
        case goAway(Rejection?)
        /// All connections are told that so many streams are welcome; with a period, in turn with the usual number.
        case streams(Int, period: Duration?)
        /// Its connection is closed without a word.
        case drop
        /// Its connection behaves as one of a service that stops: 503 `Shutdown`, then GOAWAY.
        case shutdown

        /// The kind as operators write it.
        package var name: String {
            switch self {
            case .refuse: "refuse"
            case .latency: "latency"
            case .silence: "silence"
            case .goAway: "goaway"
            case .streams: "streams"
            case .drop: "drop"
            case .shutdown: "shutdown"
            }
        }

        /// All names, as in ``name``.
        package static let names = ["refuse", "latency", "silence", "goaway", "streams", "drop", "shutdown"]
    }

    /// Whose notifications are hit.
    package enum Target: Hashable, Sendable {
        case everybody
        /// Those of one topic, in either environment.
        case topic(Topic)
        /// Those of one device token.
        case slot(Slot)
    }

    package let kind: Kind
    package let target: Target
    /// Which part of the requests is hit, above 0 and up to 1.
    package let share: Double
    /// How long the drill lasts.
    package let duration: Duration
    /// The same seed and the same order of requests give the same victims.
    package let seed: UInt64

    package init(kind: Kind, target: Target = .everybody, share: Double = 1, duration: Duration, seed: UInt64) {
        self.kind = kind
        self.target = target
        self.share = share
        self.duration = duration
        self.seed = seed
    }
}

/// What keeps drills from being left on, or from growing.
package enum DrillLimits {
    /// How long a drill may last: from a second to an hour, so that a forgotten one is over the same day.
    package static let duration: ClosedRange<Duration> = .seconds(1) ... .seconds(3600)
    /// How many drills may be on at once; each is asked about each request.
    package static let count = 16
    /// The longest that an answer is held back; clients give up long before.
    package static let latency: ClosedRange<Duration> = .zero ... .seconds(600)
    /// What `retry-after` may say.
    package static let retryAfter: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)
    /// The number of streams that a drill may announce.
    package static let streams = 1...1000
    /// How often the number of streams may change; connections look once a second.
    package static let period: ClosedRange<Duration> = .seconds(2) ... .seconds(3600)
    /// How often a drill that is on is in the log.
    static let reminder: Duration = .seconds(60)
}

extension Drill: CustomStringConvertible {
    /// The drill in words, without any token: for logs, lists and health.
    package var description: String {
        var text: String
        switch kind {
        case .refuse(let rejection, let retryAfter):
            text = "refuse with \(rejection.httpStatus) \(rejection.reason)"
            if let retryAfter { text += " and retry-after \(retryAfter.components.seconds)" }
        case .latency(let range):
            text = "answer after \(range.lowerBound.wholeMilliseconds)"
            if range.lowerBound < range.upperBound { text += " to \(range.upperBound.wholeMilliseconds)" }
            text += " ms"
        case .silence(let isAccepted):
            text = isAccepted ? "accept and never answer" : "lose and never answer"
        case .goAway(let rejection):
            text = "GOAWAY" + (rejection.map { " with \($0.reason)" } ?? "")
        case .streams(let count, let period):
            text = "\(count) concurrent streams"
            if let period { text += ", and the usual number, in turn each \(period.components.seconds) s" }
        case .drop:
            text = "drop the connection"
        case .shutdown:
            text = "shut the connection down"
        }
        if share < 1 { text += ", for \(Drill.percent(share)) % of the requests" }
        switch target {
        case .everybody: break
        case .topic(let topic): text += ", topic \(topic)"
        case .slot: text += ", one device token"
        }
        return text
    }

    /// At most three digits behind the point.
    private static func percent(_ share: Double) -> String {
        let thousandths = Int((share * 100_000).rounded())
        let (whole, rest) = thousandths.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return "\(whole)" }
        var digits = String(1000 + rest).dropFirst()
        while digits.last == "0" { digits = digits.dropLast() }
        return "\(whole).\(digits)"
    }
}
