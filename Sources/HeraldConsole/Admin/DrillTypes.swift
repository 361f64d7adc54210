/// A request to begin a drill, in the words of `herald drill start`.
package struct DrillRequest: Codable, Hashable, Sendable {
    /// `refuse`, `latency`, `silence`, `goaway`, `streams`, `drop` or `shutdown`.
    package var kind: String
    /// A reason of the table of refusals: `Unregistered`.
    package var reason: String?
    /// `20%`; without it all.
    package var share: String?
    package var topic: String?
    /// 64 hexadecimal digits; it is kept in no log and in no list.
    package var token: String?
    /// `500ms`, or a range: `200ms..2s`.
    package var latency: String?
    /// `30s`.
    package var retryAfter: String?
    /// Whether what is never answered is accepted all the same.
    package var accepted: Bool?
    /// The number of streams that connections are told.
    package var streams: Int?
    /// How long that number and the usual one stand, in turn.
    package var every: String?
    /// `60s`; a configured drill must say it.
    package var duration: String?
    package var seed: UInt64?

    private enum CodingKeys: String, CodingKey {
        case kind
        case reason
        case share
        case topic
        case token
        case latency
        case retryAfter = "retry_after"
        case accepted
        case streams
        case every
        case duration = "for"
        case seed
    }

    package init(kind: String) {
        self.kind = kind
    }
}

/// A drill that is on, or was until now.
package struct DrillEntry: Codable, Hashable, Sendable {
    package let id: Int
    package let kind: String
    /// The drill in words.
    package let what: String
    /// `operator` or `configuration`.
    package let from: String
    package let started: String
    package let ends: String
    package let secondsLeft: Double
    /// How many requests it has hit.
    package let hits: Int
    package let seed: UInt64

    private enum CodingKeys: String, CodingKey {
        case id
        case kind
        case what
        case from
        case started
        case ends
        case secondsLeft = "seconds_left"
        case hits
        case seed
    }

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
    /// What is left of it, in whole seconds; 0 if that is no number that a drill could have.
    package var wholeSecondsLeft: Int { Int(exactly: secondsLeft.rounded(.up)) ?? 0 }

    /// The drill on one line, as health says it.
    var words: String { "drill \(id): \(what), \(wholeSecondsLeft) s left" }
}
