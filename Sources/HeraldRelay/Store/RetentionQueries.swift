import HeraldModel

/// Statements that delete final rows by age, each call within one transaction.
struct RetentionQueries {
    /// Maximum number of rows that one transaction checks or deletes.
    private static let maximumChecked = 500

    let session: any SQLSession
    let dialect: SQLDialect

    /// Finds the old rows of a page; parts belong to their row.
    /// - Returns: The rows, and the row to go on after; nil at the end.
    func page(
        _ statuses: [FinalStatus],
        endedBefore end: WallTime,
        after last: Int64
    ) throws -> (old: [Int64], last: Int64?) {
        let moments = ["time_sent", "send_after", "time_queued"].map(dialect.epoch).joined(separator: ", ")
        let rows = try session.runOnce(
            """
            SELECT id, coalesce(\(moments)) FROM push_queue WHERE id > \(last) AND parent IS NULL
            AND \(Self.isFinal(statuses)) ORDER BY id LIMIT \(Self.maximumChecked)
            """,
            []
        )
        .rows
        let old = rows.filter { $0[1].int.map { $0 < end.seconds } ?? false }
        return (old.compactMap { $0[0].int }, rows.count == Self.maximumChecked ? rows.last?[0].int : nil)
    }

    /// Deletes rows with their parts, but for those that another program has queued again meanwhile.
    func delete(_ rows: [Int64], _ statuses: [FinalStatus]) throws -> Int {
        let final = try session.runOnce(
            """
            SELECT id FROM push_queue WHERE id IN (\(SQLDialect.list(rows))) AND \(Self.isFinal(statuses))
            ORDER BY id\(dialect.forUpdate)
            """,
            []
        )
        .rows.compactMap { $0[0].int }
        guard !final.isEmpty else { return 0 }
        return try RowQueries(session: session, dialect: dialect).delete(final)
    }

    private static func isFinal(_ statuses: [FinalStatus]) -> String {
        "status <> 'queued' AND status IN (\(statuses.map { "'\($0.rawValue)'" }.joined(separator: ", ")))"
    }
}
