import GRDB

/// The store's own state in the table `setting`, on the writer's connection.
struct StoreSettings {
    /// Sequences reserved at once, so that few commits have to write the ceiling.
    private static let reserve: UInt64 = 1_000_000

    /// The first sequence of this run, above all sequences that may have been used.
    let firstSequence: UInt64
    private var ceiling: UInt64
    private var pendingCeiling: UInt64?

    /// `newestSequence` is the greatest of a stored notification; nil if there is none.
    /// - Throws: `DatabaseError`.
    init(_ database: Database, newestSequence: UInt64?) throws {
        let stored = try StoreSettings.value("sequence_ceiling", database)
        let newest = Int64(clamping: newestSequence ?? 0)
        firstSequence = max(UInt64(clamping: stored), UInt64(clamping: newest) + 1, 1)
        ceiling = firstSequence
    }

    /// Whether the store was closed cleanly.
    static func isClean(_ database: Database) throws -> Bool {
        try value("is_clean", database) != 0
    }

    /// Marks the store as open, so that the next start recognizes an unclean stop.
    /// - Throws: `DatabaseError`.
    static func open(_ database: Database) throws {
        try set("is_clean", 0, database)
    }

    /// Raises the ceiling, if necessary, so that sequences below `next` are never used again.
    ///
    /// Called in the transaction that uses them.
    /// - Throws: `DatabaseError`.
    mutating func cover(_ next: UInt64, _ database: Database) throws {
        pendingCeiling = nil
        guard next > ceiling else { return }
        let ceiling = next + StoreSettings.reserve
        try StoreSettings.set("sequence_ceiling", Int64(clamping: ceiling), database)
        pendingCeiling = ceiling
    }

    /// Records that the transaction of ``cover(_:_:)`` is durable.
    mutating func committed() {
        if let pendingCeiling { ceiling = pendingCeiling }
        pendingCeiling = nil
    }

    /// Writes a counter, to test whether the disk can be written.
    /// - Throws: `DatabaseError`.
    func probe(_ database: Database) throws {
        try database.execute(sql: "UPDATE setting SET value = value + 1 WHERE name = 'probes'")
    }

    /// Marks the store as closed cleanly.
    /// - Throws: `DatabaseError`.
    func close(_ database: Database, nextSequence: UInt64) throws {
        try StoreSettings.set("sequence_ceiling", Int64(clamping: nextSequence), database)
        try StoreSettings.set("is_clean", 1, database)
    }

    static func value(_ name: String, _ database: Database) throws -> Int64 {
        try Int64.fetchOne(database, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) ?? 0
    }

    static func set(_ name: String, _ value: Int64, _ database: Database) throws {
        try database.execute(
            sql:
                "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            arguments: [name, value]
        )
    }
}
