import HeraldModel

/// Statements about rows for the API and the commands, within one transaction.
struct RowQueries {
    /// Maximum number of rows that one transaction changes, so that other programs need not wait.
    private static let maximumChanged = 1000

    let session: any SQLSession
    let dialect: SQLDialect

    func enqueue(_ push: NewPush) throws -> Int64 {
        let columns = QueueColumn.allCases.filter { push.values[$0] != nil }
        let names = columns.map(\.name).joined(separator: ", ")
        let places = (1...max(1, columns.count)).map { "?\($0)" }.joined(separator: ", ")
        let sql = "INSERT INTO push_queue (\(names)) VALUES (\(places)) RETURNING id"
        let result = try session.run(sql, columns.map { push.values[$0] ?? .null })
        guard let id = result.rows.first?[0].int else {
            throw RelayStoreError(.failed, "the database does not return the identifier of the new row")
        }
        return id
    }

    func push(_ id: Int64) throws -> PushRecord? {
        let found = try session.run(
            "SELECT status, reason, detail, time_queued, time_sent FROM push_queue WHERE id = ?1",
            [.int(id)]
        )
        guard let row = found.rows.first else { return nil }
        let outcomes = try session.run(
            """
            SELECT device_token, status, reason, detail, apns_id, attempts, time_sent FROM push_queue
            WHERE (id = ?1 OR parent = ?1) AND parts IS NULL ORDER BY id
            """,
            [.int(id)]
        )
        func moment(_ value: SQLValue) -> String? { value.text.flatMap(StoredMoment.read)?.rfc3339 }
        return PushRecord(
            id: id,
            status: row[0].text ?? "queued",
            reason: row[1].text,
            detail: row[2].text,
            timeQueued: moment(row[3]),
            timeSent: moment(row[4]),
            outcomes: outcomes.rows.map { outcome in
                PushRecord.Outcome(
                    deviceToken: outcome[0].text,
                    status: outcome[1].text ?? "queued",
                    reason: outcome[2].text,
                    detail: outcome[3].text,
                    apnsID: outcome[4].text,
                    attempts: Int(clamping: outcome[5].int ?? 0),
                    timeSent: moment(outcome[6])
                )
            }
        )
    }

    func progress(at now: WallTime) throws -> QueueProgress {
        var progress = QueueProgress()
        let isInDoubt = "status <> 'queued' AND reason = '\(RowOutcome.inDoubt)'"
        let rows = try session.run(
            """
            SELECT status, count(*), sum(CASE WHEN \(isInDoubt) THEN 1 ELSE 0 END) FROM push_queue
            WHERE parts IS NULL GROUP BY status
            """
        )
        .rows
        for row in rows {
            progress.rows[row[0].text ?? ""] = Int(clamping: row[1].int ?? 0)
            progress.inDoubt += Int(clamping: row[2].int ?? 0)
        }
        let isScheduled = "due_at > ?1 AND owner IS NULL AND attempts = 0 AND reason IS NULL"
        let queued = try session.run(
            """
            SELECT sum(CASE WHEN \(isScheduled) THEN 1 ELSE 0 END),
                sum(CASE WHEN due_at > ?1 AND owner IS NULL AND NOT (\(isScheduled)) THEN 1 ELSE 0 END),
                min(CASE WHEN \(isScheduled) THEN NULL ELSE
                    \(dialect.greatest)(\(dialect.epoch("time_queued")), coalesce(\(dialect.epoch("send_after")), 0)) END)
            , reason FROM push_queue WHERE status = 'queued' AND parts IS NULL GROUP BY reason
            """,
            [.int(now.milliseconds)]
        )
        for row in queued.rows {
            let retrying = Int(clamping: row[1].int ?? 0)
            progress.scheduled += Int(clamping: row[0].int ?? 0)
            progress.retrying += retrying
            if retrying > 0, let reason = row[3].text { progress.waiting[reason] = retrying }
            if let oldest = row[2].int {
                let age = Double(max(0, now.seconds - oldest))
                progress.oldestUnsentSeconds = max(age, progress.oldestUnsentSeconds ?? 0)
            }
        }
        progress.breakers = try DeadTokenQueries(session: session).breakers()
        let claims = try session.run(
            """
            SELECT owner, count(*), max(due_at) FROM push_queue
            WHERE status = 'queued' AND due_at > 0 AND owner IS NOT NULL GROUP BY owner ORDER BY owner
            """
        )
        progress.claims = claims.rows.map { row in
            let end = WallTime(milliseconds: row[2].int ?? 0)
            return QueueProgress.Claim(
                owner: row[0].text ?? "",
                rows: Int(clamping: row[1].int ?? 0),
                leaseEnd: end.rfc3339,
                isLapsed: end <= now
            )
        }
        let isDead = "dead_at IS NOT NULL AND (registered_at IS NULL OR registered_at <= dead_at)"
        let devices = try session.run(
            """
            SELECT sum(CASE WHEN \(isDead) THEN 0 ELSE 1 END), sum(CASE WHEN \(isDead) THEN 1 ELSE 0 END),
            sum(CASE WHEN held_at IS NOT NULL AND dead_at IS NULL THEN 1 ELSE 0 END) FROM devices
            """
        )
        if let row = devices.rows.first {
            progress.devices = Int(clamping: row[0].int ?? 0)
            progress.deadDevices = Int(clamping: row[1].int ?? 0)
            progress.heldDevices = Int(clamping: row[2].int ?? 0)
        }
        return progress
    }

    /// The next rows of a selection.
    func page(of selection: RowSelection, and extra: String, after last: Int64) throws -> [Int64] {
        let (conditions, arguments) = conditions(selection)
        let sql = """
            SELECT id FROM push_queue WHERE id > \(last) AND \(extra) AND \(conditions) ORDER BY id
            LIMIT \(Self.maximumChanged)
            """
        return try session.runOnce(sql, arguments).rows.compactMap { $0[0].int }
    }

    func retry(_ rows: [Int64]) throws -> Int {
        let list = SQLDialect.list(rows)
        _ = try session.runOnce(
            """
            UPDATE push_queue SET status = 'queued', reason = NULL, detail = NULL, time_sent = NULL WHERE parts IS NOT NULL
            AND id IN (SELECT parent FROM push_queue WHERE id IN (\(list)))
            """,
            []
        )
        return try session.runOnce(
            """
            UPDATE push_queue SET status = 'queued', reason = NULL, detail = NULL, apns_id = NULL, attempts = 0,
            time_sent = NULL, due_at = 0, owner = NULL, uncertain = 0, time_queued = CURRENT_TIMESTAMP WHERE id IN (\(list))
            """,
            []
        )
        .changed
    }

    func delete(_ rows: [Int64]) throws -> Int {
        let list = SQLDialect.list(rows)
        _ = try session.runOnce("DELETE FROM push_queue WHERE parent IN (\(list))", [])
        return try session.runOnce("DELETE FROM push_queue WHERE id IN (\(list))", []).changed
    }

    private func conditions(_ selection: RowSelection) -> (String, [SQLValue]) {
        let statuses = selection.statuses.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        var conditions = [statuses.isEmpty ? "1 = 0" : "status IN (\(statuses))"]
        var arguments: [SQLValue] = []
        if let ids = selection.ids { conditions.append(ids.isEmpty ? "1 = 0" : "id IN (\(SQLDialect.list(ids)))") }
        if let reason = selection.reason {
            arguments.append(.text(reason))
            conditions.append("reason = ?\(arguments.count)")
        }
        if let topic = selection.topic {
            arguments.append(.text(topic))
            conditions.append("topic = ?\(arguments.count)")
        }
        if let before = selection.before { conditions.append("\(dialect.epoch("time_queued")) < \(before.seconds)") }
        return (conditions.joined(separator: " AND "), arguments)
    }
}
