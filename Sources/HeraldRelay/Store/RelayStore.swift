package import HeraldModel

/// What the relay needs of the database that holds its queue.
///
/// Both engines prove themselves with one suite of tests.
///
/// Every call is one short transaction. None throws anything but ``RelayStoreError``.
package protocol RelayStore: Sendable {
    /// Makes the tables that are missing, and checks that what is there can be used.
    func prepare() async throws
    /// Claims rows that are due, the oldest first: durable when it returns.
    func claim(_ order: ClaimOrder) async throws -> [QueueRow]
    /// When the next row is due that nobody has; nil if there is none.
    func nextDue() async throws -> WallTime?
    /// Writes what became of rows; of a row that is final already, nothing.
    /// - Returns: The rows that became final by it, rows for many tokens among them.
    func finish(_ outcomes: [RowOutcome], owner: String) async throws -> [FinishedRow]
    /// Makes claims of an owner last until then: those named, since it may own rows that it was never told of.
    func extend(_ rows: [Int64], owner: String, until: WallTime) async throws
    /// Frees every claim, whoever holds it; for a database that only one relay can have.
    func takeOver(at: WallTime) async throws -> Int
    /// Makes a row for many tokens into rows for one each.
    func spread(_ row: Int64, to tokens: [String], owner: String) async throws
    /// Makes rows for many tokens final whose last parts somebody deleted; looks at some of them after that row.
    /// - Returns: What became final, and after which row to go on; nil: from the beginning.
    func settle(after last: Int64) async throws -> (finished: [FinishedRow], last: Int64?)
    /// The tokens of a user's devices for a topic that are not dead, at most so many.
    func tokens(of user: String, topic: String, limit: Int) async throws -> [String]
    /// The payload of a template in each language.
    func template(_ name: String) async throws -> [String: String]

    /// Marks tokens dead that were not registered since; or, held, only says that it would have.
    /// - Returns: How many were marked.
    func bury(_ deaths: [Death], held: Bool) async throws -> Int
    /// Makes dead tokens alive again, and takes the brakes off that are meant with them.
    func revive(_ selection: DeviceSelection, at: WallTime) async throws -> Revival
    /// Keeps that a brake is on, for whoever starts next and for the other relays; `revive` takes it off.
    func keep(_ brake: DeathBrake.Alarm) async throws
    /// Registers a token, or its languages anew.
    func register(_ device: DeviceEntry) async throws

    /// Queues a row.
    func enqueue(_ push: NewPush) async throws -> Int64
    /// A row and what became of its tokens; nil if there is none.
    func push(_ id: Int64) async throws -> PushRecord?
    func progress(at: WallTime) async throws -> QueueProgress
    /// Queues final rows again, as new.
    func retry(_ selection: RowSelection) async throws -> Int
    /// Deletes final rows.
    func purge(_ selection: RowSelection) async throws -> Int

    /// Tells that others may have written.
    func changes() -> AsyncStream<Void>
    func close() async
}

/// Who claims how much, and for how long.
package struct ClaimOrder: Sendable {
    package var limit: Int
    package var owner: String
    package var now: WallTime
    package var leaseEnd: WallTime

    package init(limit: Int, owner: String, now: WallTime, leaseEnd: WallTime) {
        self.limit = limit
        self.owner = owner
        self.now = now
        self.leaseEnd = leaseEnd
    }
}

/// A row that has become final.
package struct FinishedRow: Hashable, Sendable {
    package let row: Int64
    package let status: FinalStatus
}

/// That a token is dead, and how that is known.
package struct Death: Hashable, Sendable {
    package let token: String
    package let topic: String
    /// Since when, by the service.
    package let time: WallTime
    package let evidence: String

    package init(token: String, topic: String, time: WallTime, evidence: String) {
        self.token = token
        self.topic = topic
        self.time = time
        self.evidence = evidence
    }
}

/// Which tokens; what is nil does not choose.
package struct DeviceSelection: Sendable {
    package var tokens: [String]?
    package var topic: String?
    /// Dead since then or later.
    package var since: WallTime?

    /// Whether brakes are meant too: those of a topic, or all; not where single tokens are named.
    var meansBrakes: Bool { tokens == nil && (topic != nil || since == nil) }

    package init(tokens: [String]? = nil, topic: String? = nil, since: WallTime? = nil) {
        self.tokens = tokens
        self.topic = topic
        self.since = since
    }
}

/// What was revived.
package struct Revival: Hashable, Sendable {
    package let tokens: Int
    /// The apps whose brake it took off.
    package let brakes: [String]
}

/// Which rows that are final; what is nil does not choose.
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

/// A row to be queued.
package struct NewPush: Sendable {
    /// By column; what is missing is null.
    var values: [QueueColumn: SQLValue]

    init(_ values: [QueueColumn: SQLValue]) {
        self.values = values
    }
}

/// A row, and what became of it.
package struct PushRecord: Codable, Hashable, Sendable {
    package struct Outcome: Codable, Hashable, Sendable {
        package let deviceToken: String?
        package let status: String
        package let reason: String?
        package let apnsID: String?
        package let attempts: Int
        package let timeSent: String?

        private enum CodingKeys: String, CodingKey {
            case deviceToken = "device_token"
            case status
            case reason
            case apnsID = "apns_id"
            case attempts
            case timeSent = "time_sent"
        }
    }

    package let id: Int64
    package let status: String
    package let reason: String?
    package let timeQueued: String?
    package let timeSent: String?
    /// One for each token.
    package let outcomes: [Outcome]

    private enum CodingKeys: String, CodingKey {
        case id
        case status
        case reason
        case timeQueued = "time_queued"
        case timeSent = "time_sent"
        case outcomes
    }
}

/// How the queue stands.
package struct QueueProgress: Codable, Hashable, Sendable {
    /// A relay that holds rows.
    package struct Claim: Codable, Hashable, Sendable {
        package let owner: String
        package let rows: Int
        /// Until when it has them, if it says nothing before; RFC 3339.
        package let leaseEnd: String
        /// Whether that is over, and another relay may take them.
        package let isLapsed: Bool

        private enum CodingKeys: String, CodingKey {
            case owner
            case rows
            case leaseEnd = "lease_end"
            case isLapsed = "lapsed"
        }
    }

    /// That tokens of an app are not marked dead.
    package struct Brake: Codable, Hashable, Sendable {
        /// Its topic and environment.
        package let app: String
        /// So many of so many answers were deaths.
        package let deaths: Int
        package let answers: Int
        /// RFC 3339.
        package let since: String
    }

    /// Rows by status.
    package var rows: [String: Int] = [:]
    /// Rows that are queued and wait for their `send_after`.
    package var scheduled = 0
    /// Rows that were sent, got no final answer, and wait for the next try.
    package var retrying = 0
    /// Why rows wait for the next try, and how many for each reason.
    package var waiting: [String: Int] = [:]
    /// How long the oldest row has waited that could have been sent, in seconds; nil if there is none.
    package var oldestUnsentSeconds: Double?
    package var claims: [Claim] = []
    /// The brakes that are on.
    package var brakes: [Brake] = []
    /// Tokens that are registered and not dead.
    package var devices = 0
    package var deadDevices = 0
    /// Tokens that were not marked dead, since the brake was on.
    package var heldDevices = 0

    private enum CodingKeys: String, CodingKey {
        case rows
        case scheduled
        case retrying
        case waiting
        case oldestUnsentSeconds = "oldest_unsent_seconds"
        case claims
        case brakes
        case devices
        case deadDevices = "dead_devices"
        case heldDevices = "held_devices"
    }
}
