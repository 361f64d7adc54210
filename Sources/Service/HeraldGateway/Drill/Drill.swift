import HeraldJSON
package import HeraldModel

/// A failure on demand: its effect, its victims and its duration.
///
/// A drill hits only notifications that have passed every check; other requests get their usual refusal.
package struct Drill: Hashable, Sendable {
    /// The effect on a request that is hit.
    package enum Kind: Hashable, Sendable {
        /// Refuses it; without `retryAfter` the default of the reason applies.
        case refuse(RefusalReason, retryAfter: Duration?)
        /// Refuses it with any status from 400 to 599, and with nothing else that is not named here.
        ///
        /// Without a reason, which may be any text, the answer has no body.
        case refuseAs(status: Int, reason: String?, retryAfter: Duration?)
        /// Processes it at once and delays the answer.
        case latency(ClosedRange<Duration>)
        /// Never answers it; if accepted, Herald stores or delivers it all the same, otherwise it is lost.
        case silence(isAccepted: Bool)
        /// Resets its stream (RST_STREAM with INTERNAL_ERROR) in place of an answer; accepted or lost as with `silence`.
        case reset(isAccepted: Bool)
        /// Resets its stream with REFUSED_STREAM: Herald has not processed it, and the client may send it again.
        case refuseStream
        /// Sends GOAWAY: answers it and earlier requests, ignores later ones of the connection.
        ///
        /// In two steps, the first GOAWAY ignores nothing yet (RFC 9113 §6.8); the reason is in the second.
        case goAway(RefusalReason?, isTwoStep: Bool = false)
        /// Announces a number of streams to all connections; with a period, it alternates with the usual number.
        case streams(Int, period: Duration?)
        /// Closes its connection without GOAWAY or close_notify.
        case drop
        /// Makes its connection behave as when the service stops: 503 `Shutdown`, then GOAWAY.
        case shutdown

        /// Name in commands and metrics.
        package var name: String {
            switch self {
            case .refuse, .refuseAs: "refuse"
            case .latency: "latency"
            case .silence: "silence"
            case .reset: "reset"
            case .refuseStream: "refuse-stream"
            case .goAway: "goaway"
            case .streams: "streams"
            case .drop: "drop"
            case .shutdown: "shutdown"
            }
        }

        /// All values of ``name``.
        package static let names = [
            "refuse", "latency", "silence", "reset", "refuse-stream", "goaway", "streams", "drop", "shutdown",
        ]
    }

    /// The notifications that a drill may hit.
    package enum Target: Hashable, Sendable {
        case everybody
        /// Notifications to one topic, in either environment.
        case topic(Topic)
        /// Notifications to one device token.
        case slot(Slot)
    }

    package let kind: Kind
    package var target: Target
    /// Share of requests that are hit, above 0 and up to 1.
    package let share: Double
    /// The most requests that are hit, at least 1; nil for no limit.
    package let first: Int?
    /// Time from the start, or from the last renewal of a lease.
    package let duration: Duration
    /// Whether it has to be renewed, by the machine's clock alone.
    package let isLease: Bool
    /// With the same seed and order of requests, a drill hits the same requests.
    package let seed: UInt64

    package init(
        kind: Kind,
        target: Target = .everybody,
        share: Double = 1,
        first: Int? = nil,
        duration: Duration,
        isLease: Bool = false,
        seed: UInt64
    ) {
        self.kind = kind
        self.target = target
        self.share = share
        self.first = first
        self.duration = duration
        self.isLease = isLease
        self.seed = seed
    }
}

/// Limits of drills.
package enum DrillLimits {
    /// Duration of a drill: at most an hour, so that a forgotten one ends soon.
    package static let duration: ClosedRange<Duration> = .seconds(1) ... .seconds(3600)
    /// Time without a renewal after which a lease ends; short, because the program that renews it may have died.
    package static let lease: ClosedRange<Duration> = .seconds(1) ... .seconds(60)
    /// The most requests that a drill may be limited to.
    package static let first = 1...1_000_000
    /// Payloads whose drills are counted, because they have a limit; the oldest is forgotten.
    static let countedPayloads = 1000
    /// Maximum number of active drills; each is evaluated for each request.
    package static let count = 16
    /// Delay of an answer; clients time out long before the maximum.
    package static let latency: ClosedRange<Duration> = .zero ... .seconds(600)
    /// Value of `retry-after`.
    package static let retryAfter: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)
    /// Status of a refusal: the errors of RFC 9110 §15.5 and §15.6.
    package static let status = 400...599
    /// The most bytes of a reason that APNs does not have: with an explanation, the answer stays below 1,024 bytes.
    package static let reasonBytes = 100
    /// Number of streams that a drill may announce.
    package static let streams = 1...1000
    /// Period of a change of the number of streams; connections check once a second.
    package static let period: ClosedRange<Duration> = .seconds(2) ... .seconds(3600)
    /// Interval of the log line about active drills.
    static let reminder: Duration = .seconds(60)
}

extension Drill: CustomStringConvertible {
    /// The drill in words for logs, lists and health; contains no token.
    package var description: String {
        var text: String
        switch kind {
        case .refuse(let refusalReason, let retryAfter):
            text = "refuse with \(refusalReason.httpStatus) \(refusalReason.reason)" + Drill.words(retryAfter)
        case .refuseAs(let status, let reason, let retryAfter):
            let reason = reason.map { "\(JSON.string($0))" } ?? "without a body"
            text = "refuse with \(status) \(reason)" + Drill.words(retryAfter)
        case .latency(let range):
            text = "answer after \(range.lowerBound.wholeMilliseconds)"
            if range.lowerBound < range.upperBound { text += " to \(range.upperBound.wholeMilliseconds)" }
            text += " ms"
        case .silence(let isAccepted):
            text = isAccepted ? "accept and never answer" : "lose and never answer"
        case .reset(let isAccepted):
            text = isAccepted ? "accept and reset the stream" : "lose and reset the stream"
        case .refuseStream:
            text = "refuse the stream"
        case .goAway(let refusalReason, let isTwoStep):
            text = "GOAWAY" + (isTwoStep ? " in two steps" : "") + (refusalReason.map { " with \($0.reason)" } ?? "")
        case .streams(let count, let period):
            text = "\(count) concurrent streams"
            if let period { text += ", alternating with the usual limit every \(period.components.seconds) s" }
        case .drop:
            text = "drop the connection"
        case .shutdown:
            text = "shut the connection down"
        }
        if let first { text += first == 1 ? ", once" : ", \(first) times" }
        if share < 1 { text += ", for \(Drill.percent(share)) % of the requests" }
        switch target {
        case .everybody: break
        case .topic(let topic): text += ", topic \(topic)"
        case .slot: text += ", one device token"
        }
        return text
    }

    private static func words(_ retryAfter: Duration?) -> String {
        retryAfter.map { " and retry-after \($0.components.seconds)" } ?? ""
    }

    /// A percentage with at most three decimals.
    private static func percent(_ share: Double) -> String {
        let thousandths = Int((share * 100_000).rounded())
        let (whole, rest) = thousandths.quotientAndRemainder(dividingBy: 1000)
        guard rest > 0 else { return "\(whole)" }
        var digits = String(1000 + rest).dropFirst()
        while digits.last == "0" { digits = digits.dropLast() }
        return "\(whole).\(digits)"
    }
}
