import HeraldJSON

/// A request to start a drill, with the options of `herald drill start`.
package struct DrillRequest: Codable, SnakeCased, Hashable, Sendable {
    /// `refuse`, `latency`, `silence`, `reset`, `refuse-stream`, `goaway`, `streams`, `drop` or `shutdown`.
    package var kind: String
    /// Reason string, for example `Unregistered`; with a ``status`` any text, or nil for an answer without a body.
    package var reason: String?
    /// Status of a refusal, 400 to 599; nil for the reason's.
    package var status: Int?
    /// Share of the requests, for example `20%`; nil means all.
    package var share: String?
    /// The most requests that are affected; nil means all.
    package var first: Int?
    package var topic: String?
    /// 64 hexadecimal digits; no log and no list contains it.
    package var token: String?
    /// `500ms`, or a range: `200ms..2s`.
    package var latency: String?
    /// `30s`.
    package var retryAfter: String?
    /// Whether Herald accepts the requests that it does not answer.
    package var accepted: Bool?
    /// Whether a GOAWAY that ignores no stream precedes the usual one.
    package var twoStep: Bool?
    /// Stream limit that connections announce.
    package var streams: Int?
    /// Interval at which that limit and the usual one alternate.
    package var every: String?
    /// `60s`; required for a configured drill.
    package var `for`: String?
    /// `30s`: in place of ``for`` the time after which it ends unless it is renewed.
    package var lease: String?
    package var seed: UInt64?

    package init(kind: String) {
        self.kind = kind
    }
}

/// A drill that is active, or has just ended.
package struct DrillEntry: Codable, SnakeCased, Hashable, Sendable {
    package let id: Int
    package let kind: String
    /// Description.
    package let what: String
    /// `operator` or `configuration`.
    package let from: String
    package let started: String
    package let ends: String
    package let secondsLeft: Double
    /// Number of affected requests.
    package var hits: Int
    package let seed: UInt64
    /// The nodes of a cluster at which it is active, of those that answered; nil for a service of one node.
    package var nodes: [String]?

    package init(
        id: Int,
        kind: String,
        what: String,
        from: String,
        started: String,
        ends: String,
        secondsLeft: Double,
        hits: Int,
        seed: UInt64
    ) {
        self.id = id
        self.kind = kind
        self.what = what
        self.from = from
        self.started = started
        self.ends = ends
        self.secondsLeft = secondsLeft
        self.hits = hits
        self.seed = seed
    }
}

extension DrillEntry {
    /// Remaining whole seconds; 0 if out of range.
    package var wholeSecondsLeft: Int { Int(exactly: secondsLeft.rounded(.up)) ?? 0 }

    /// The drill on one line, for health.
    package var words: String { "drill \(id): \(what), \(wholeSecondsLeft) s left" }
}
