import GRDB
import HeraldMailbox
import HeraldModel

/// The rows of the table `tally`, which count the journal's lines by hour, app, push type, priority and state.
///
/// A commit counts its lines in memory. Once a minute, a commit that is made anyway adds the numbers to the rows, and notes
/// the position of the journal up to which the rows have all lines. A start counts the lines after it again, so a crash
/// loses no line and counts none twice. Because a commit that fills a chunk writes the numbers too, these lines are in the
/// chunk that the start reads anyway (``JournalDigest``).
struct TallyTable {
    /// Hours that are kept: 90 days.
    static let keptHours: Int64 = 90 * 24
    /// Hours that are read at once: a long read would keep the write-ahead log from starting over.
    static let hoursPerRead: Int64 = 48
    /// More keys than these are written early.
    private static let keyLimit = 10_000
    private static let positionName = "tallied"

    private let interval: Duration
    private let deletionLimit: Int
    private let addition: HotStatement
    private let deletion: HotStatement
    /// Counts of durable lines that are not in the rows.
    private var pending = HourlyCounts()
    /// The position of the journal up to which the rows have all lines.
    private var position: Int64
    private var dueAt: Duration
    /// The position after this commit, which writes the rows; nil if it does not.
    private var nextPosition: Int64?

    init(_ database: Database, _ configuration: SQLiteStoreConfiguration) throws {
        interval = configuration.tallyInterval
        deletionLimit = configuration.maintenanceSlice
        addition = try HotStatement(
            database,
            sql: """
                INSERT INTO tally (hour, app, traits, state, count) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET count = min(count, 1 << 60) + excluded.count
                """
        )
        deletion = try HotStatement(
            database,
            sql: """
                DELETE FROM tally WHERE (hour, app, traits, state) IN
                (SELECT hour, app, traits, state FROM tally WHERE hour < ? LIMIT ?)
                """
        )
        position = try StoreSettings.value(TallyTable.positionName, database)
        dueAt = interval
    }

    /// Counts a line that the journal had at the start.
    mutating func recount(_ event: JournalEvent, at position: Int64) {
        if position >= self.position { pending.count(event) }
    }

    /// Adds the counts of a commit's lines to the rows, if it is time or a reader waits for all counts (`isWanted`).
    ///
    /// `end` is the position of the journal after the lines. `moment` is the time of the service, for rows that are too
    /// old; `now` is the time since the writer's start.
    /// - Throws: `DatabaseError`.
    mutating func write(
        _ batch: HourlyCounts,
        upTo end: Int64,
        at moment: WallTime,
        now: Duration,
        isWanted: Bool,
        _ database: Database
    ) throws {
        nextPosition = nil
        guard !batch.isEmpty || !pending.isEmpty else { return }
        let isDue = now >= dueAt || pending.keyCount + batch.keyCount > TallyTable.keyLimit
        guard isWanted || isDue || JournalDigest.chunk(of: end) > JournalDigest.chunk(of: position) else { return }
        var all = pending
        all.add(batch)
        let counts = all.counts
        for (key, count) in counts {
            addition.bind(key.hour, at: 1)
            addition.bind(TallyTable.stored(key.app), at: 2)
            addition.bind(Int64(key.traits.rawValue), at: 3)
            addition.bind(Int64(key.state.rawValue), at: 4)
            addition.bind(Int64(count), at: 5)
            try addition.run()
        }
        try StoreSettings.set(TallyTable.positionName, end, database)
        deletion.bind(TallyKey.hour(of: moment) - TallyTable.keptHours, at: 1)
        deletion.bind(Int64(max(deletionLimit, counts.count)), at: 2)
        try deletion.run()
        nextPosition = end
        dueAt = now + interval
    }

    /// Takes over what ``write(_:upTo:at:now:isWanted:_:)`` did once the commit is durable.
    mutating func committed(_ batch: HourlyCounts) {
        if let nextPosition {
            position = nextPosition
            pending.clear()
        } else {
            pending.add(batch)
        }
        nextPosition = nil
    }

    /// The column `app`: the number of the app, or 0 or -1 for none in production or the sandbox.
    private static func stored(_ app: TallyApp) -> Int64 {
        switch app {
        case .app(let app): Int64(app.value)
        case .none(.production): 0
        case .none(.sandbox): -1
        }
    }

    private static func app(stored: Int64) -> TallyApp? {
        switch stored {
        case 0: .none(.production)
        case -1: .none(.sandbox)
        default: UInt32(exactly: stored).map { .app(AppNumber($0)) }
        }
    }

    /// Reads the counts of some hours; rows that no key has are left out.
    static func read(_ database: Database, hours: Range<Int64>, _ body: (TallyKey, Int) -> Void) throws {
        let statement = try HotStatement(
            database,
            sql: "SELECT hour, app, traits, state, count FROM tally WHERE hour >= ? AND hour < ?",
            isCached: true
        )
        statement.bind(hours.lowerBound, at: 1)
        statement.bind(hours.upperBound, at: 2)
        try statement.forEachRow { row in
            if let app = app(stored: row.integer(1)),
                let traits = UInt8(exactly: row.integer(2)).flatMap(JournalTraits.init(rawValue:)),
                let state = UInt8(exactly: row.integer(3)).flatMap(JournalState.init(rawValue:)),
                let count = Int(exactly: row.integer(4))
            {
                body(TallyKey(hour: row.integer(0), app: app, traits: traits, state: state), count)
            }
            return true
        }
    }
}
