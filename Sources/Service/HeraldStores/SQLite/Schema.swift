import GRDB

/// The tables of a database, and the migrations from earlier formats.
///
/// `user_version` in the file's header holds the format, so that an older Herald refuses a newer file.
struct Schema: Sendable {
    /// Changes the tables and rows of one format into those of the next.
    typealias Migration = @Sendable (Database) throws -> Void

    /// The store's schema that this version of Herald writes.
    static let current = Schema(migrations: [])

    /// Makes the tables of a new database.
    var tables: String = Schema.storeTables

    /// The migration from format 1 to 2 comes first.
    ///
    /// A released migration never changes.
    let migrations: [Migration]

    /// The format that this schema writes, and the newest that it reads.
    var format: UInt32 { UInt32(clamping: migrations.count + 1) }

    /// The format of an open store; 0 if its tables are not made yet.
    static func format(of database: Database) throws -> UInt32 {
        UInt32(truncatingIfNeeded: try Int64.fetchOne(database, sql: "PRAGMA user_version") ?? 0)
    }

    /// Makes the tables of a new store, or runs the migrations that an older one lacks, in one transaction.
    /// - Throws: `DatabaseError`; the store is then unchanged.
    func apply(to database: Database) throws {
        try database.inTransaction(.immediate) {
            let found = try Schema.format(of: database)
            if found == 0 {
                try database.execute(sql: tables)
            } else {
                for migration in migrations.dropFirst(Int(found) - 1) { try migration(database) }
            }
            try database.execute(sql: "PRAGMA user_version = \(format)")
            return .commit
        }
    }

    static let storeTables = mailbox + journal + registry + channels + settings

    /// Stored notifications, up to 48 in one row (``Segment``), and one row for each segment with deleted ones
    /// (``Tombstones``).
    ///
    /// There is no secondary index: the index by slot is in memory. The start reads the headers alone, so they come first.
    private static let mailbox = """
        CREATE TABLE segment (
            number INTEGER PRIMARY KEY,
            headers BLOB NOT NULL,
            bodies BLOB NOT NULL
        ) STRICT;
        CREATE TABLE tombstone (
            segment INTEGER PRIMARY KEY,
            bits INTEGER NOT NULL
        ) STRICT;

        """

    /// One row for each commit's events (``JournalRow``).
    ///
    /// `position` counts the bytes of all earlier rows, so that the first and the last row give the journal's size. Each
    /// chunk of positions that is full has a digest (``JournalDigest``). `journal_sender` has the names of the senders in the
    /// events (``SenderTable``), and `tally` counts them by hour (``TallyTable``).
    private static let journal = """
        CREATE TABLE journal (
            position INTEGER PRIMARY KEY,
            first_time INTEGER NOT NULL,
            last_time INTEGER NOT NULL,
            events BLOB NOT NULL
        ) STRICT;
        CREATE TABLE journal_sender (
            number INTEGER PRIMARY KEY,
            name TEXT NOT NULL
        ) STRICT;
        CREATE TABLE journal_digest (
            number INTEGER PRIMARY KEY,
            bits BLOB NOT NULL
        ) STRICT;
        CREATE TABLE tally (
            hour INTEGER NOT NULL,
            app INTEGER NOT NULL,
            traits INTEGER NOT NULL,
            state INTEGER NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (hour, app, traits, state)
        ) STRICT, WITHOUT ROWID;

        """

    private static let registry = """
        CREATE TABLE device (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            is_saving_power INTEGER NOT NULL DEFAULT 0,
            session TEXT
        ) STRICT;
        CREATE TABLE app (
            number INTEGER PRIMARY KEY,
            topic TEXT NOT NULL,
            environment TEXT NOT NULL,
            origin_device INTEGER,
            origin_team TEXT,
            created INTEGER NOT NULL,
            UNIQUE (topic, environment)
        ) STRICT;
        CREATE TABLE registration (
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            is_live INTEGER NOT NULL,
            registered INTEGER NOT NULL,
            ended INTEGER,
            is_enabled INTEGER NOT NULL,
            PRIMARY KEY (device, app)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE feedback (
            app INTEGER NOT NULL,
            time INTEGER NOT NULL,
            device INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            PRIMARY KEY (app, time, device)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX feedback_of_registration ON feedback (device, app);

        """

    /// Broadcast channels, numbered in the order of their creation, and the newest message of each channel that stores one.
    private static let channels = """
        CREATE TABLE channel (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            storage INTEGER NOT NULL,
            created INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE broadcast (
            channel INTEGER PRIMARY KEY,
            number INTEGER NOT NULL,
            id BLOB NOT NULL,
            unique_id BLOB NOT NULL,
            received INTEGER NOT NULL,
            stored_until INTEGER NOT NULL,
            priority INTEGER NOT NULL,
            payload BLOB NOT NULL
        ) STRICT;

        """

    /// The store's own state: whether it was closed cleanly (`is_clean`), the sequence below which all numbers may have
    /// been used (`sequence_ceiling`), a counter for test writes (`probes`), and the certain time (`clock_…`).
    private static let settings = """
        CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            value INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO setting VALUES ('is_clean', 1), ('sequence_ceiling', 1), ('probes', 0);

        """
}
