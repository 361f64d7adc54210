import HeraldModel

/// Statements that write the outcomes of rows, within one transaction.
struct OutcomeQueries {
    /// Outcomes that one statement writes.
    private struct Update: Hashable {
        let change: RowOutcome.Change
        let detail: String?
        /// The second in which the row ended; nil for a row that stays queued.
        let ended: Int64?

        init(_ outcome: RowOutcome) {
            change = outcome.change
            detail = outcome.detail
            if case .final = outcome.change { ended = outcome.time.seconds } else { ended = nil }
        }
    }

    /// Maximum number of rows for many tokens in one check, which reads all their parts at worst.
    static let maximumChecked = 100

    let session: any SQLSession
    private var dialect: SQLDialect { session.dialect }
    private var tables: TableNames { session.tables }

    func finish(_ outcomes: [RowOutcome], owner: String) throws -> [FinishedRow] {
        var finished: [FinishedRow] = []
        let parents = Set(outcomes.compactMap(\.parent)).sorted()
        // Two relays that each finish one of the last two parts of a row must see each other's write.
        try lock(parents)
        // Most outcomes of a second are equal, and share a statement.
        for (update, group) in Dictionary(grouping: outcomes, by: Update.init) {
            finished += try write(update, to: group.sorted { $0.row < $1.row }, owner: owner)
        }
        return try finished + close(parents)
    }

    /// Locks rows until the end of the transaction, in order of their identifiers.
    private func lock(_ rows: [Int64]) throws {
        guard !rows.isEmpty, !dialect.forUpdate.isEmpty else { return }
        let sql =
            "SELECT id FROM \(tables.queue) WHERE id IN (\(SQLDialect.list(rows))) ORDER BY id\(dialect.forUpdate)"
        _ = try session.runOnce(sql, [])
    }

    /// - Returns: The rows that are final now.
    private func write(_ update: Update, to outcomes: [RowOutcome], owner: String) throws -> [FinishedRow] {
        let rows = outcomes.map(\.row)
        switch update.change {
        case .final(let status, let reason):
            let end = update.ended.map { WallTime(seconds: $0) }
            // A refusal with a detail is the relay's own: the row was not sent.
            let isAttempt = status == .sent || (status == .refused && update.detail == nil)
            // `due_at` keeps the end of rows without a `time_sent`, for their age.
            let assignments = """
                status = ?1, reason = ?2, time_sent = ?3, attempts = \(Self.attempts) + ?4, due_at = ?5, owner = NULL,
                uncertain = 0, detail = ?6
                """
            let values: [SQLValue] = [
                .text(status.rawValue), .text(reason),
                end.flatMap { status == .sent ? StoredMoment.text($0) : nil } ?? .null,
                .int(isAttempt ? 1 : 0), .int(end?.milliseconds ?? 0), .text(update.detail),
            ]
            func finish(_ rows: [Int64], _ value: SQLValue, _ condition: String) throws -> [Int64] {
                try run(assignments, values + [value], on: rows, where: "status = 'queued' AND \(condition)").rows
                    .compactMap { try $0[0].int }
            }
            var finished = try finish(rows, .text(owner), "owner = ?7")
            let own = Set(finished)
            // Regardless of the claim's owner, the service's answer to the row's identifier is the truth. A row that was
            // queued anew in the meantime has another identifier.
            for outcome in outcomes where !own.contains(outcome.row) {
                finished += try finish([outcome.row], .text(outcome.apnsID), "apns_id = ?7")
            }
            return finished.map { FinishedRow(row: $0, status: status) }
        case .later(let moment, let reason, let uncertain, let counts):
            let why = (reason, update.detail)
            try postpone(rows, until: moment, why, uncertain: uncertain ? 1 : 0, attempts: counts ? 1 : 0, owner)
        case .lookUp(let moment, let reason, let lookups):
            let why = (reason, update.detail)
            try postpone(rows, until: moment, why, uncertain: 1 + max(0, lookups), attempts: 0, owner)
        }
        return []
    }

    /// The attempts so far; at most a million, if another program has written them.
    private static let attempts = "CASE WHEN attempts BETWEEN 0 AND 1000000 THEN attempts ELSE 1000000 END"

    private func postpone(
        _ rows: [Int64],
        until moment: WallTime,
        _ why: (reason: String?, detail: String?),
        uncertain: Int,
        attempts: Int,
        _ owner: String
    ) throws {
        _ = try run(
            "due_at = ?1, reason = ?2, detail = ?3, uncertain = ?4, attempts = \(Self.attempts) + ?5, owner = NULL",
            [
                .int(min(moment.milliseconds, RelaySchema.never - 1)), .text(why.reason), .text(why.detail),
                .int(Int64(uncertain)), .int(Int64(attempts)), .text(owner),
            ],
            on: rows,
            where: "status = 'queued' AND owner = ?6"
        )
    }

    /// Updates rows with one statement; for a single row, with one that is prepared once.
    private func run(
        _ assignments: String,
        _ arguments: [SQLValue],
        on rows: [Int64],
        where condition: String
    ) throws -> SQLResult {
        let start = "UPDATE \(tables.queue) SET \(assignments) WHERE \(condition) AND id"
        if rows.count == 1, let row = rows.first {
            return try session.run("\(start) = ?\(arguments.count + 1) RETURNING id", arguments + [.int(row)])
        }
        return try session.runOnce("\(start) IN (\(SQLDialect.list(rows))) RETURNING id", arguments)
    }

    /// Finds rows for many tokens without a queued part.
    /// - Returns: The rows, and the row to go on after; nil at the end.
    func abandoned(after last: Int64) throws -> (rows: [Int64], last: Int64?) {
        let rows =
            try session.run(
                """
                SELECT p.id, EXISTS (SELECT 1 FROM \(tables.queue) q WHERE q.parent = p.id AND q.status = 'queued')
                FROM (SELECT id FROM \(tables.queue) WHERE status = 'queued' AND due_at = \(RelaySchema.never)
                AND parts IS NOT NULL AND id > ?1 ORDER BY id LIMIT \(Self.maximumChecked)) p ORDER BY p.id
                """,
                [.int(last)]
            )
            .rows
        let next = rows.count == Self.maximumChecked ? try rows.last?[0].int : nil
        return (try rows.filter { !["1", "t"].contains(try $0[1].text ?? "") }.compactMap { try $0[0].int }, next)
    }

    func settle(_ rows: [Int64]) throws -> [FinishedRow] {
        try lock(rows)
        return try close(rows)
    }

    private func close(_ parents: [Int64]) throws -> [FinishedRow] {
        try parents.compactMap { parent in
            try close(parent: parent).map { FinishedRow(row: parent, status: $0) }
        }
    }

    /// Finishes a row for many tokens if all its parts are final; deleted parts count as not sent.
    private func close(parent: Int64) throws -> FinalStatus? {
        let parts = try session.run("SELECT parts FROM \(tables.queue) WHERE id = ?1", [.int(parent)])
        let made = try parts.rows.first?[0].int ?? 0
        let result = try session.run(
            "SELECT status, count(*), min(reason) FROM \(tables.queue) WHERE parent = ?1 GROUP BY status",
            [.int(parent)]
        )
        var counts: [String: Int64] = [:]
        for row in result.rows { counts[try row[0].text ?? ""] = try row[1].int ?? 0 }
        guard made > 0, counts["queued"] == nil else { return nil }
        let total = max(made, counts.values.reduce(0, +))
        let sent = counts[FinalStatus.sent.rawValue] ?? 0
        let order: [FinalStatus] = [.sent, .refused, .failed, .expired]
        let status = order.first { counts[$0.rawValue] != nil } ?? .failed
        let row = try result.rows.first { try $0[0].text == status.rawValue }
        var (reason, detail): (String?, String?) = (nil, nil)
        if sent == 0, let row {
            reason = try row[2].text
            // The sentence of the first part with this reason.
            let sql = """
                SELECT detail FROM \(tables.queue) WHERE parent = ?1 AND status = ?2 AND reason = ?3 ORDER BY id LIMIT 1
                """
            detail = try session.run(sql, [.int(parent), .text(status.rawValue), .text(reason)]).rows.first?[0].text
        } else if sent < total {
            let error = sent > 0 ? RowError(.sentInPart, "sent to \(sent) of \(total)") : RowError(.partsDeleted)
            (reason, detail) = (error.reason.rawValue, error.detail)
        }
        // Only sent parts have a time.
        let changed = try session.run(
            """
            UPDATE \(tables.queue) SET status = ?2, reason = ?3, detail = ?4,
            time_sent = (SELECT max(part.time_sent) FROM \(tables.queue) part WHERE part.parent = ?1 AND part.status = 'sent')
            WHERE id = ?1 AND status = 'queued'
            """,
            [.int(parent), .text(status.rawValue), .text(reason), .text(detail)]
        )
        return changed.changed > 0 ? status : nil
    }
}
