import HeraldJSON
package import HeraldModel

/// Result of a transaction that finishes and claims rows.
package struct QueueUpdate: Sendable {
    /// The rows that are final now, including rows for many tokens.
    package let finished: [FinishedRow]
    package let claimed: [QueueRow]
}

/// A request for rows to send.
package struct ClaimRequest: Sendable {
    package var limit: Int
    package var owner: String
    package var now: WallTime
    package var leaseEnd: WallTime
    /// The topic of rows that name none; nil leaves them without one.
    package var topic: String?
}

/// A row that is final now.
package struct FinishedRow: Hashable, Sendable {
    package let row: Int64
    package let status: FinalStatus
}

/// A report that a token is dead.
package struct DeadToken: Hashable, Sendable {
    package let token: String
    package let topic: String
    /// Since when, according to the service.
    package let time: WallTime
    package let evidence: String
}

/// Criteria for tokens; nil matches all.
package struct TokenSelection: Sendable {
    package var tokens: [String]?
    package var topic: String?
    /// Dead since then or later.
    package var since: WallTime?

    /// Whether it includes breakers: those of the topic, or all; it does not if it names tokens.
    var includesBreakers: Bool { tokens == nil && (topic != nil || since == nil) }

    package init(tokens: [String]? = nil, topic: String? = nil, since: WallTime? = nil) {
        self.tokens = tokens
        self.topic = topic
        self.since = since
    }
}

/// Result of ``RelayStore/revive(_:)``.
package struct Revival: Hashable, Sendable {
    package let tokens: Int
    /// The apps whose breaker was reset.
    package let breakers: [String]
}

/// Criteria for final rows; nil matches all.
package struct RowSelection: Sendable {
    package var ids: [Int64]?
    package var statuses: [FinalStatus]
    package var reason: String?
    package var topic: String?
    /// Queued before then.
    package var before: WallTime?

    package init(
        ids: [Int64]? = nil,
        statuses: [FinalStatus] = FinalStatus.allCases,
        reason: String? = nil,
        topic: String? = nil,
        before: WallTime? = nil
    ) {
        self.ids = ids
        self.statuses = statuses
        self.reason = reason
        self.topic = topic
        self.before = before
    }
}

/// Change that a command makes to finished rows; the raw value is the condition for the rows that it changes itself.
package enum RowChange: String, Sendable {
    /// A row for many tokens is final again once its parts are.
    case retry = "parts IS NULL"
    /// Parts are deleted with their row.
    case purge = "parent IS NULL"
}

/// Rows that a selection leaves out although a user may expect them in it.
package struct LeftOutRows: Hashable, Sendable {
    package struct Row: Hashable, Sendable {
        package let id: Int64
        /// Nil if there is no such row.
        package let status: String?
        /// The row for many tokens of which this is a part.
        package let parent: Int64?
    }

    /// The rows that were named and do not match.
    package internal(set) var named: [Row] = []
    /// Number of rows without a readable time, which ``RowSelection/before`` never matches.
    package internal(set) var undated = 0
}

/// Dead tokens that a selection leaves out although a user may expect them in it.
package struct LeftOutTokens: Sendable {
    /// The tokens that were named and do not match: whether `devices` has them, and as dead.
    package internal(set) var named: [(token: String, isKnown: Bool, isDead: Bool)] = []
    /// Number of dead tokens without a readable time, which ``TokenSelection/since`` never matches.
    package internal(set) var undated = 0
}

/// Rows that were deleted together.
package struct PurgedRows: Sendable {
    /// When the first and the last of them were queued; nil if there are none, or their times cannot be read.
    package private(set) var queued: ClosedRange<WallTime>?
    /// Number of rows, without the parts of rows for many tokens.
    package private(set) var count = 0

    mutating func add(_ other: PurgedRows) {
        count += other.count
        guard let more = other.queued else { return }
        let known = queued ?? more
        queued = min(known.lowerBound, more.lowerBound)...max(known.upperBound, more.upperBound)
    }
}

/// A row to be queued.
package struct NewPush: Sendable {
    /// Values by column; the others are NULL.
    var values: [QueueColumn: SQLValue]

    init(_ values: [QueueColumn: SQLValue]) {
        self.values = values
    }
}

/// A row with the outcomes of its tokens.
package struct PushRecord: Encodable, SnakeCased, Hashable, Sendable {
    package struct Outcome: Encodable, SnakeCased, Hashable, Sendable {
        package let deviceToken: String?
        package let status: String
        package let reason: String?
        package let detail: String?
        package let apnsID: String?
        package let attempts: Int
        package let timeSent: String?
    }

    package let id: Int64
    package let status: String
    package let reason: String?
    package let detail: String?
    package let timeQueued: String?
    package let timeSent: String?
    /// One for each token.
    package let outcomes: [Outcome]
}

package struct QueueProgress: Encodable, SnakeCased, Hashable, Sendable {
    /// The claims of one relay.
    package struct Claim: Encodable, SnakeCased, Hashable, Sendable {
        package let owner: String
        package let rows: Int
        /// End of the lease, unless it is extended; RFC 3339.
        package let leaseEnd: String
        /// Whether the lease has ended, so that another relay may take the rows.
        package let lapsed: Bool
    }

    /// An open breaker: the app's dead tokens are not marked.
    package struct Breaker: Encodable, SnakeCased, Hashable, Sendable {
        /// Topic and environment.
        package let app: String
        /// Dead tokens among the answers in the window.
        package let deadTokens: Int
        package let answers: Int
        /// When it opened; RFC 3339.
        package let since: String
    }

    /// Rows by status.
    package var rows: [String: Int] = [:]
    /// Number of queued rows before their `send_after`.
    package var scheduled = 0
    /// Number of rows that wait for another attempt.
    package var retrying = 0
    /// Number of waiting rows by reason.
    package var waiting: [String: Int] = [:]
    /// Age of the oldest row that could have been sent, in seconds; nil if there is none.
    package var oldestUnsentSeconds: Double?
    /// Number of final rows that may have been sent: nobody knows.
    package var inDoubt = 0
    package var claims: [Claim] = []
    package var breakers: [Breaker] = []
    /// Number of registered tokens that are not dead.
    package var devices = 0
    package var deadDevices = 0
    /// Number of tokens that were reported dead while marking was suspended.
    package var heldDevices = 0
}
