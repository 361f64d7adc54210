import GRDB

/// The tables, as a list of steps that only ever grows: a step that was released is never changed.
enum Schema {
    /// How many steps there are; in the file as `user_version`, so that an older Herald refuses a newer file.
    static let version: UInt32 = 4

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1: mailbox, journal, registry", foreignKeyChecks: .immediate) { database in
            try database.execute(sql: mailbox + journal + registry + settings + "PRAGMA user_version = 1;")
        }
        migrator.registerMigration("2: channels", foreignKeyChecks: .immediate) { database in
            try database.execute(sql: channels + "PRAGMA user_version = 2;")
        }
        migrator.registerMigration("3: bundles", foreignKeyChecks: .immediate) { database in
            try database.execute(sql: bundles)
            try FormerMailbox.carryOver(database)
            try database.execute(sql: "DROP TABLE mailbox; PRAGMA user_version = 3;")
        }
        // New rows say the same in another form; those that are there stay as they are.
        migrator.registerMigration("4: rows of the journal", foreignKeyChecks: .immediate) { database in
            try database.execute(sql: "PRAGMA user_version = 4;")
        }
        return migrator
    }

    /// One row for each notification that waits, until the third step.
    private static let mailbox = """
        CREATE TABLE mailbox (
            sequence INTEGER PRIMARY KEY,
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            stored_until INTEGER,
            id BLOB NOT NULL,
            unique_id BLOB NOT NULL,
            received INTEGER NOT NULL,
            priority INTEGER NOT NULL,
            push_type INTEGER NOT NULL,
            collapse_id TEXT,
            checksum INTEGER NOT NULL,
            payload BLOB NOT NULL
        );

        """

    /// Notifications that wait, some in one row (``Bundle``), at the end of the table whichever they are, and one row for
    /// each of these in which some are dead (``Members``).
    ///
    /// No secondary index: the index by slot is in memory. What the start reads of each row comes first.
    private static let bundles = """
        CREATE TABLE bundle (
            number INTEGER PRIMARY KEY,
            heads BLOB NOT NULL,
            bodies BLOB NOT NULL
        );
        CREATE TABLE dead (
            number INTEGER PRIMARY KEY,
            members INTEGER NOT NULL
        );

        """

    /// One row for each commit's lines (``JournalRow``); where there are fingerprints it is of an earlier format
    /// (``FormerJournalRow``).
    ///
    /// `position` counts the bytes ever written before it, and some for each row, so that the first and the last row tell the journal's size.
    private static let journal = """
        CREATE TABLE journal (
            position INTEGER PRIMARY KEY,
            first_time INTEGER NOT NULL,
            last_time INTEGER NOT NULL,
            fingerprints BLOB NOT NULL,
            events BLOB NOT NULL
        );

        """

    private static let registry = """
        CREATE TABLE device (
            number INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            is_saving_power INTEGER NOT NULL DEFAULT 0,
            session TEXT
        );
        CREATE TABLE app (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            topic TEXT NOT NULL,
            environment TEXT NOT NULL,
            UNIQUE (topic, environment)
        );
        CREATE TABLE registration (
            device INTEGER NOT NULL,
            app INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            is_live INTEGER NOT NULL,
            registered INTEGER NOT NULL,
            ended INTEGER,
            is_enabled INTEGER NOT NULL,
            PRIMARY KEY (device, app)
        ) WITHOUT ROWID;
        CREATE TABLE feedback (
            app INTEGER NOT NULL,
            time INTEGER NOT NULL,
            device INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            PRIMARY KEY (app, time, device)
        ) WITHOUT ROWID;
        CREATE UNIQUE INDEX feedback_of_registration ON feedback (device, app);

        """

    /// Broadcast channels, numbered in the order in which they were made, and the newest message of each that stores one.
    private static let channels = """
        CREATE TABLE channel (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id BLOB NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            storage INTEGER NOT NULL,
            created INTEGER NOT NULL
        );
        CREATE TABLE broadcast (
            channel INTEGER PRIMARY KEY,
            number INTEGER NOT NULL,
            id BLOB NOT NULL,
            unique_id BLOB NOT NULL,
            received INTEGER NOT NULL,
            stored_until INTEGER NOT NULL,
            priority INTEGER NOT NULL,
            payload BLOB NOT NULL
        );

        """

    /// What the store remembers of itself: whether it was closed (`is_clean`), the sequence below which all may have
    /// been used (`sequence_ceiling`), and a number that is only there to be written (`probes`).
    private static let settings = """
        CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            value INTEGER NOT NULL
        ) WITHOUT ROWID;
        INSERT INTO setting VALUES ('is_clean', 1), ('sequence_ceiling', 1), ('probes', 0);

        """
}
