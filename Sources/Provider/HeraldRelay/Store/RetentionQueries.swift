import HeraldModel

/// Statements that delete final rows by age, each call within one transaction.
struct RetentionQueries {
    /// Maximum number of rows that one transaction checks or deletes.
    private static let maximumChecked = 500

    let session: any SQLSession
    private var dialect: SQLDialect { session.dialect }
    private var tables: TableNames { session.tables }

    /// Finds the old rows among the next rows of the queue, whatever their status; parts belong to their row.
    ///
    /// A row ended at its `time_sent`. Without one it ended at its `due_at`, which the relay writes with the outcome. A row
    /// that another program finished has neither: its `send_after` counts, else its `time_queued`.
    /// - Returns: The old rows, and the row to go on after; nil at the end.
    func page(
        _ statuses: [FinalStatus],
        endedBefore end: WallTime,
        after last: Int64
    ) throws -> (old: [Int64], last: Int64?) {
        let rows = try session.runOnce(
            """
            SELECT id, CASE WHEN parent IS NULL AND \(Self.isFinal(statuses)) THEN coalesce(\(ended), \(dialect.milliseconds("time_queued"))) END
            FROM \(tables.queue) WHERE id > \(last) ORDER BY id LIMIT \(Self.maximumChecked)
            """,
            []
        )
        .rows
        let old = try rows.filter { try $0[1].int.map { $0 < end.milliseconds } ?? false }
        return (try old.compactMap { try $0[0].int }, rows.count == Self.maximumChecked ? try rows.last?[0].int : nil)
    }

    /// When a row ended, most exact first, as arguments of `coalesce`.
    var ended: String {
        // The `due_at` of a row for many tokens stays beyond all clocks; it ends with its last part.
        let due = """
            CASE WHEN parts IS NOT NULL THEN (SELECT max(part.due_at) FROM \(tables.queue) part
            WHERE part.parent = \(tables.queue).id AND part.due_at > 0) WHEN due_at > 0 THEN due_at END
            """
        return "\(dialect.milliseconds("time_sent")), \(due), \(dialect.milliseconds("send_after"))"
    }

    /// Deletes rows with their parts, but for those that another program has queued again meanwhile.
    func delete(_ rows: [Int64], _ statuses: [FinalStatus]) throws -> Int {
        let final = try session.runOnce(
            """
            SELECT id FROM \(tables.queue) WHERE id IN (\(SQLDialect.list(rows))) AND \(Self.isFinal(statuses))
            ORDER BY id\(dialect.forUpdate)
            """,
            []
        )
        .rows.compactMap { try $0[0].int }
        guard !final.isEmpty else { return 0 }
        return try RowQueries(session: session).delete(final)
    }

    private static func isFinal(_ statuses: [FinalStatus]) -> String {
        "status <> 'queued' AND status IN (\(statuses.map { "'\($0.rawValue)'" }.joined(separator: ", ")))"
    }
}
