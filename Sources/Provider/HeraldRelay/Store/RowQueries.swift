import HeraldModel

/// Statements about rows for the API and the commands, within one transaction.
struct RowQueries {
    /// Maximum number of rows that one transaction changes, so that other programs need not wait.
    private static let maximumChanged = 1000

    let session: any SQLSession
    private var dialect: SQLDialect { session.dialect }
    private var tables: TableNames { session.tables }

    func enqueue(_ push: NewPush) throws -> Int64 {
        let columns = QueueColumn.allCases.filter { push.values[$0] != nil }
        let names = columns.map(\.name).joined(separator: ", ")
        let places = (1...max(1, columns.count)).map { "?\($0)" }.joined(separator: ", ")
        let sql = "INSERT INTO \(tables.queue) (\(names)) VALUES (\(places)) RETURNING id"
        let result = try session.run(sql, columns.map { push.values[$0] ?? .null })
        guard let id = try result.rows.first?[0].int else {
            throw RelayStoreError(.failed, "the database does not return the identifier of the new row")
        }
        return id
    }

    func push(_ id: Int64) throws -> PushRecord? {
        let (queued, sent) = (dialect.time("time_queued"), dialect.time("time_sent"))
        let found = try session.run(
            "SELECT status, reason, detail, \(queued), \(sent) FROM \(tables.queue) WHERE id = ?1",
            [.int(id)]
        )
        guard let row = found.rows.first else { return nil }
        let outcomes = try session.run(
            """
            SELECT device_token, status, reason, detail, apns_id, attempts, \(sent) FROM \(tables.queue)
            WHERE (id = ?1 OR parent = ?1) AND parts IS NULL ORDER BY id
            """,
            [.int(id)]
        )
        func moment(_ value: SQLValue) -> String? { dialect.moment(value)?.rfc3339 }
        return PushRecord(
            id: id,
            status: try row[0].text ?? "queued",
            reason: try row[1].text,
            detail: try row[2].text,
            timeQueued: moment(try row[3]),
            timeSent: moment(try row[4]),
            outcomes: try outcomes.rows.map { outcome in
                PushRecord.Outcome(
                    deviceToken: try outcome[0].text,
                    status: try outcome[1].text ?? "queued",
                    reason: try outcome[2].text,
                    detail: try outcome[3].text,
                    apnsID: try outcome[4].text,
                    attempts: Int(clamping: try outcome[5].int ?? 0),
                    timeSent: moment(try outcome[6])
                )
            }
        )
    }

    func progress(at now: WallTime) throws -> QueueProgress {
        var progress = QueueProgress()
        let isInDoubt = "status <> 'queued' AND reason = '\(RowOutcome.inDoubt)'"
        let rows = try session.run(
            """
            SELECT status, count(*), sum(CASE WHEN \(isInDoubt) THEN 1 ELSE 0 END) FROM \(tables.queue)
            WHERE parts IS NULL GROUP BY status
            """
        )
        .rows
        for row in rows {
            progress.rows[try row[0].text ?? ""] = Int(clamping: try row[1].int ?? 0)
            progress.inDoubt += Int(clamping: try row[2].int ?? 0)
        }
        try addQueued(to: &progress, now)
        progress.breakers = try DeadTokenQueries(session: session).breakers()
        let claims = try session.run(
            """
            SELECT owner, count(*), max(due_at) FROM \(tables.queue)
            WHERE status = 'queued' AND due_at > 0 AND owner IS NOT NULL GROUP BY owner ORDER BY owner
            """
        )
        progress.claims = try claims.rows.map { row in
            let end = WallTime(milliseconds: try row[2].int ?? 0)
            return QueueProgress.Claim(
                owner: try row[0].text ?? "",
                rows: Int(clamping: try row[1].int ?? 0),
                leaseEnd: end.rfc3339,
                lapsed: end <= now
            )
        }
        let isDead = dialect.isDead(tables.devices)
        let devices = try session.run(
            """
            SELECT sum(CASE WHEN \(isDead) THEN 0 ELSE 1 END), sum(CASE WHEN \(isDead) THEN 1 ELSE 0 END),
            sum(CASE WHEN held_at IS NOT NULL AND dead_at IS NULL THEN 1 ELSE 0 END) FROM \(tables.devices)
            """
        )
        if let row = devices.rows.first {
            progress.devices = Int(clamping: try row[0].int ?? 0)
            progress.deadDevices = Int(clamping: try row[1].int ?? 0)
            progress.heldDevices = Int(clamping: try row[2].int ?? 0)
        }
        return progress
    }

    private func addQueued(to progress: inout QueueProgress, _ now: WallTime) throws {
        let isScheduled = "due_at > ?1 AND owner IS NULL AND attempts = 0 AND reason IS NULL"
        let (queued, start) = (dialect.milliseconds("time_queued"), dialect.milliseconds("send_after"))
        let rows = try session.run(
            """
            SELECT sum(CASE WHEN \(isScheduled) THEN 1 ELSE 0 END),
                sum(CASE WHEN due_at > ?1 AND owner IS NULL AND NOT (\(isScheduled)) THEN 1 ELSE 0 END),
                min(CASE WHEN \(isScheduled) THEN NULL ELSE \(dialect.greatest)(\(queued), coalesce(\(start), 0)) END), reason
            FROM \(tables.queue) WHERE status = 'queued' AND parts IS NULL GROUP BY reason
            """,
            [.int(now.milliseconds)]
        )
        .rows
        for row in rows {
            let retrying = Int(clamping: try row[1].int ?? 0)
            progress.scheduled += Int(clamping: try row[0].int ?? 0)
            progress.retrying += retrying
            if retrying > 0, let reason = try row[3].text { progress.waiting[reason] = retrying }
            if let oldest = try row[2].int {
                let age = Double(max(0, now.seconds - WallTime(milliseconds: oldest).seconds))
                progress.oldestUnsentSeconds = max(age, progress.oldestUnsentSeconds ?? 0)
            }
        }
    }

    /// The next rows of a selection; with `locks`, no other program changes them before the end of the transaction.
    func page(
        of selection: RowSelection,
        for change: RowChange,
        after last: Int64,
        locks: Bool
    ) throws -> [Int64] {
        let (conditions, arguments) = conditions(selection)
        let sql = """
            SELECT id FROM \(tables.queue) WHERE id > \(last) AND \(change.rawValue) AND \(conditions) ORDER BY id
            LIMIT \(Self.maximumChanged)\(locks ? dialect.forUpdate : "")
            """
        return try session.runOnce(sql, arguments).rows.compactMap { try $0[0].int }
    }

    /// Finds what a selection leaves out although a user may expect it in there.
    func leftOut(_ selection: RowSelection, by change: RowChange) throws -> LeftOutRows {
        var left = LeftOutRows()
        if let ids = selection.ids {
            let (conditions, arguments) = conditions(selection)
            let rows = try session.runOnce(
                """
                SELECT id, status, parent, CASE WHEN EXISTS (SELECT 1 FROM \(tables.queue) WHERE
                (id = named.id OR parent = named.id) AND \(change.rawValue) AND \(conditions)) THEN 1 ELSE 0 END
                FROM \(tables.queue) named WHERE id IN (\(SQLDialect.list(ids))) ORDER BY id
                """,
                arguments
            )
            .rows
            let known = Set(try rows.compactMap { try $0[0].int })
            left.named = Set(ids).subtracting(known).sorted().map { LeftOutRows.Row(id: $0, status: nil, parent: nil) }
            for row in rows where try row[3].int == 0 {
                guard let id = try row[0].int else { continue }
                left.named.append(LeftOutRows.Row(id: id, status: try row[1].text ?? "", parent: try row[2].int))
            }
        }
        if selection.before != nil {
            var ageless = selection
            ageless.before = nil
            let (conditions, arguments) = conditions(ageless)
            let sql =
                "SELECT count(*) FROM \(tables.queue) WHERE \(change.rawValue) AND \(conditions) AND \(age) IS NULL"
            left.undated = Int(clamping: try session.runOnce(sql, arguments).rows.first?[0].int ?? 0)
        }
        return left
    }

    /// When a row was queued, or if that cannot be read, when it ended.
    private var age: String {
        "coalesce(\(dialect.milliseconds("time_queued")), \(RetentionQueries(session: session).ended))"
    }

    /// When the first and the last of some rows were queued.
    func span(of rows: [Int64]) throws -> ClosedRange<WallTime>? {
        let queued = dialect.milliseconds("time_queued")
        let sql = "SELECT min(\(queued)), max(\(queued)) FROM \(tables.queue) WHERE id IN (\(SQLDialect.list(rows)))"
        guard let row = try session.runOnce(sql, []).rows.first, let first = try row[0].int, let last = try row[1].int,
            first <= last
        else { return nil }
        return WallTime(milliseconds: first)...WallTime(milliseconds: last)
    }

    /// Queues rows again, which must be locked.
    func retry(_ rows: [Int64]) throws -> Int {
        let list = SQLDialect.list(rows)
        _ = try session.runOnce(
            """
            UPDATE \(tables.queue) SET status = 'queued', reason = NULL, detail = NULL, time_sent = NULL WHERE parts IS NOT NULL
            AND id IN (SELECT parent FROM \(tables.queue) WHERE id IN (\(list)))
            """,
            []
        )
        return try session.runOnce(
            """
            UPDATE \(tables.queue) SET status = 'queued', reason = NULL, detail = NULL, apns_id = NULL, attempts = 0, time_sent = NULL,
            due_at = 0, owner = NULL, uncertain = 0, time_queued = CURRENT_TIMESTAMP WHERE id IN (\(list))
            """,
            []
        )
        .changed
    }

    /// Deletes rows, which must be locked, with their parts.
    func delete(_ rows: [Int64]) throws -> Int {
        let list = SQLDialect.list(rows)
        _ = try session.runOnce("DELETE FROM \(tables.queue) WHERE parent IN (\(list))", [])
        return try session.runOnce("DELETE FROM \(tables.queue) WHERE id IN (\(list))", []).changed
    }

    private func conditions(_ selection: RowSelection) -> (String, [SQLValue]) {
        let statuses = selection.statuses.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        var conditions = [statuses.isEmpty ? "1 = 0" : "status IN (\(statuses))"]
        var arguments: [SQLValue] = []
        if let ids = selection.ids {
            let list = SQLDialect.list(ids)
            conditions.append(ids.isEmpty ? "1 = 0" : "(id IN (\(list)) OR parent IN (\(list)))")
        }
        if let reason = selection.reason {
            arguments.append(.text(reason))
            conditions.append("reason = ?\(arguments.count)")
        }
        if let topic = selection.topic {
            arguments.append(.text(topic))
            conditions.append("topic = ?\(arguments.count)")
        }
        if let before = selection.before {
            conditions.append("\(age) < \(before.milliseconds)")
        }
        return (conditions.joined(separator: " AND "), arguments)
    }
}
