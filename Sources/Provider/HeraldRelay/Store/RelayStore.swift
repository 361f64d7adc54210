import HeraldJSON
package import HeraldModel

/// The database that holds the queue; both implementations pass one test suite.
///
/// Each call is one short transaction and throws only ``RelayStoreError``.
package protocol RelayStore: Sendable {
    /// Creates missing tables, and checks the existing ones.
    /// - Returns: Warnings for an operator, such as a missing part that the relay can do without; one line each.
    @discardableResult
    func prepare() async throws -> [String]
    /// Writes outcomes, and claims due rows, oldest first. All of it is durable when it returns.
    ///
    /// A row that is already final does not change.
    /// - Parameters:
    ///   - outcomes: The outcomes.
    ///   - owner: The relay that writes them.
    ///   - request: The claim; nil for none.
    /// - Returns: The rows that are final now, and the rows that were claimed.
    /// - Throws: `RelayStoreError`; nothing is written then.
    func finish(
        _ outcomes: [RowOutcome],
        owner: String,
        claiming request: ClaimRequest?
    ) async throws -> QueueUpdate
    /// When the next unclaimed row is due; nil if there is none.
    func nextDue() async throws -> WallTime?
    /// Extends the claims of an owner on the given rows. It may own others whose claim it never received.
    func extend(_ rows: [Int64], owner: String, until: WallTime) async throws
    /// Ends the claims of an owner on all rows but the given ones. They are due at once, and were not sent by that owner.
    /// - Returns: The number of rows.
    func release(except rows: [Int64], owner: String) async throws -> Int
    /// Ends all claims of any owner, for a database with only one relay.
    func takeOver(at: WallTime) async throws -> Int
    /// Splits a row for many tokens into one row for each.
    func fanOut(_ row: Int64, to tokens: [String], owner: String) async throws
    /// Finishes rows for many tokens whose remaining parts were deleted. One call checks a limited number of rows.
    /// - Returns: The finished rows, and the row to go on after; nil at the end.
    func settle(after last: Int64) async throws -> (finished: [FinishedRow], last: Int64?)
    /// Tokens of a user's live devices for a topic, at most `limit`.
    func tokens(of user: String, topic: String, limit: Int) async throws -> [String]
    /// Payload of a template by language.
    func template(_ name: String) async throws -> [String: String]

    /// Marks tokens dead that were not registered since; with `held`, only records that they would have been.
    /// - Returns: Number of marked tokens.
    func markDead(_ tokens: [DeadToken], held: Bool) async throws -> Int
    /// Makes dead tokens alive again, and resets the breakers of the selection.
    func revive(_ selection: DeviceSelection) async throws -> Revival
    /// Keeps an open breaker for later starts and other relays, until ``revive(_:)`` resets it.
    func save(_ trip: DeadTokenBreaker.Trip) async throws
    /// Registers a token, or updates its registration.
    func register(_ device: DeviceEntry) async throws

    /// Queues a row.
    func enqueue(_ push: NewPush) async throws -> Int64
    /// A row with the outcomes of its tokens; nil if it does not exist.
    func push(_ id: Int64) async throws -> PushRecord?
    func progress(at: WallTime) async throws -> QueueProgress
    /// Queues final rows again, as new ones.
    func retry(_ selection: RowSelection) async throws -> Int
    /// Deletes final rows; a dry run only looks for them.
    func purge(_ selection: RowSelection, isDryRun: Bool) async throws -> PurgedRows
    /// Deletes final rows of these statuses that ended before a time. One call checks a limited number of rows.
    ///
    /// A row that another program finished without a `time_sent` counts from its `send_after`, else its `time_queued`.
    /// - Returns: The number of deleted rows, and the row to go on after; nil at the end.
    func deleteOld(
        _ statuses: [FinalStatus],
        endedBefore: WallTime,
        after last: Int64
    ) async throws -> (deleted: Int, last: Int64?)

    /// Reports that other programs may have written.
    /// - Parameter note: Called once if the database cannot report it, with the reason. The stream then has an element each second.
    /// - Returns: A stream with an element for each report, and one at the start.
    func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void>
    func close() async
}

extension RelayStore {
    /// Claims due rows, oldest first.
    ///
    /// The claims are durable when it returns.
    package func claim(_ request: ClaimRequest) async throws -> [QueueRow] {
        try await finish([], owner: request.owner, claiming: request).claimed
    }

    /// Writes outcomes; a row that is already final does not change.
    /// - Returns: The rows that are final now, including rows for many tokens.
    package func finish(_ outcomes: [RowOutcome], owner: String) async throws -> [FinishedRow] {
        try await finish(outcomes, owner: owner, claiming: nil).finished
    }
}

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

    package init(limit: Int, owner: String, now: WallTime, leaseEnd: WallTime, topic: String? = nil) {
        self.limit = limit
        self.owner = owner
        self.now = now
        self.leaseEnd = leaseEnd
        self.topic = topic
    }
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

    package init(token: String, topic: String, time: WallTime, evidence: String) {
        self.token = token
        self.topic = topic
        self.time = time
        self.evidence = evidence
    }
}

/// Criteria for tokens; nil matches all.
package struct DeviceSelection: Sendable {
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
    /// Number of dead tokens without a readable time, which ``DeviceSelection/since`` never matches.
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
package struct PushRecord: Codable, SnakeCased, Hashable, Sendable {
    package struct Outcome: Codable, SnakeCased, Hashable, Sendable {
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

/// State of the queue.
package struct QueueProgress: Codable, SnakeCased, Hashable, Sendable {
    /// The claims of one relay.
    package struct Claim: Codable, SnakeCased, Hashable, Sendable {
        package let owner: String
        package let rows: Int
        /// End of the lease, unless it is extended; RFC 3339.
        package let leaseEnd: String
        /// Whether the lease has ended, so that another relay may take the rows.
        package let isLapsed: Bool

        private enum CodingKeys: String, CodingKey {
            case owner, rows, leaseEnd
            case isLapsed = "lapsed"
        }
    }

    /// An open breaker: the app's dead tokens are not marked.
    package struct Breaker: Codable, SnakeCased, Hashable, Sendable {
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
    /// Open breakers.
    package var breakers: [Breaker] = []
    /// Number of registered tokens that are not dead.
    package var devices = 0
    package var deadDevices = 0
    /// Number of tokens that were reported dead while marking was suspended.
    package var heldDevices = 0
}
