import HeraldModel

/// Statements that claim rows for a relay, within one transaction.
struct ClaimQueries {
    let session: any SQLSession
    private var dialect: SQLDialect { session.dialect }
    private var tables: TableNames { session.tables }

    func claim(_ request: ClaimRequest) throws -> [QueueRow] {
        // Half of the room is for retries and lapsed leases. Rows that were never tried have the oldest `due_at`, so a
        // long queue of them would delay the others.
        var rows = try claim((request.limit + 1) / 2, "due_at > 0", request)
        rows += try claim(request.limit - rows.count, "1 = 1", request)
        rows.sort { $0.id < $1.id }
        try addDevices(to: &rows)
        return rows
    }

    private func claim(_ limit: Int, _ condition: String, _ request: ClaimRequest) throws -> [QueueRow] {
        guard limit > 0 else { return [] }
        let columns = QueueColumn.allCases.map { dialect.selection($0) }
        // A row with an owner was claimed before, by a relay that did not record its outcome. This relay's own claims are
        // not due before their lease ends.
        return try session.run(
            """
            WITH due AS MATERIALIZED (
                SELECT id FROM \(tables.queue) WHERE status = 'queued' AND due_at <= ?1 AND \(condition)
                ORDER BY due_at, id LIMIT ?2\(dialect.skipLocked)
            )
            UPDATE \(tables.queue) SET
                uncertain = CASE WHEN owner IS NOT NULL AND uncertain = 0 THEN 1 ELSE uncertain END,
                owner = ?3, due_at = ?4, apns_id = coalesce(apns_id, \(dialect.randomUUID)),
                topic = coalesce(nullif(topic, ''), ?5)
            WHERE id IN (SELECT id FROM due)
            RETURNING id, substr(apns_id, 1, 64), uncertain, attempts, parent, \(columns.joined(separator: ", "))
            """,
            [
                .int(request.now.milliseconds), .int(Int64(limit)), .text(request.owner),
                .int(request.leaseEnd.milliseconds), .text(request.topic),
            ]
        )
        .rows.compactMap { row in
            guard let id = try row[0].int else { return nil }
            let uncertain = try row[2].int ?? 0
            return QueueRow(
                id: id,
                apnsID: try row[1].text,
                isUncertain: uncertain > 0,
                lookups: QueueRow.count(max(uncertain, 1) - 1),
                attempts: QueueRow.count(try row[3].int ?? 0),
                parent: try row[4].int,
                device: nil,
                values: try row.last(QueueColumn.allCases.count, from: 5),
                dialect: dialect
            )
        }
    }

    /// Reads the entries in `devices` for the tokens of rows.
    private func addDevices(to rows: inout [QueueRow]) throws {
        guard !rows.isEmpty, try !session.run("SELECT 1 FROM \(tables.devices) LIMIT 1").rows.isEmpty else { return }
        let isDead = dialect.isDead("d")
        let result = try session.runOnce(
            """
            SELECT q.id, d.device_token, substr(d.environment, 1, 64), substr(d.service, 1, 64),
            substr(d.languages, 1, 1024), CASE WHEN \(isDead) THEN 1 WHEN NOT \(isDead) THEN 0 END
            FROM \(tables.queue) q JOIN \(tables.devices) d
            ON d.device_token = lower(substr(q.device_token, 1, 512)) AND d.topic = q.topic
            WHERE q.id IN (\(SQLDialect.list(rows.lazy.map(\.id)))) ORDER BY q.id
            """,
            []
        )
        var index = 0
        for row in result.rows {
            guard let id = try row[0].int, let token = try row[1].text else { continue }
            var entry = RelayDevice(token: token, topic: "")
            entry.environment = try row[2].text
            entry.service = try row[3].text
            entry.languages = LanguageList.read(try row[4].text ?? "")
            entry.isDead = try row[5].int.map { $0 == 1 }
            // Both are in the order of their identifiers.
            while index < rows.count, rows[index].id < id { index += 1 }
            if index < rows.count, rows[index].id == id { rows[index].device = entry }
        }
    }

    func nextDue() throws -> WallTime? {
        let result = try session.run("SELECT min(due_at) FROM \(tables.queue) WHERE status = 'queued'")
        guard let due = try result.rows.first?[0].int, due < RelaySchema.never else { return nil }
        return WallTime(milliseconds: due)
    }

    func extend(_ rows: [Int64], owner: String, until: WallTime) throws {
        _ = try session.runOnce(
            "UPDATE \(tables.queue) SET due_at = ?2 WHERE owner = ?1 AND status = 'queued' AND id IN (\(SQLDialect.list(rows)))",
            [.text(owner), .int(until.milliseconds)]
        )
    }

    func release(except rows: [Int64], owner: String) throws -> Int {
        // Without an owner, the next claim does not take them for sent. A doubt from an earlier owner stays in `uncertain`.
        let others = rows.isEmpty ? "" : " AND id NOT IN (\(SQLDialect.list(rows)))"
        return try session.runOnce(
            "UPDATE \(tables.queue) SET owner = NULL, due_at = 0 WHERE owner = ?1 AND status = 'queued' AND due_at > 0\(others)",
            [.text(owner)]
        )
        .changed
    }

    func takeOver(at moment: WallTime) throws -> Int {
        try session.run(
            "UPDATE \(tables.queue) SET due_at = ?1 WHERE owner IS NOT NULL AND status = 'queued' AND due_at > ?1",
            [.int(moment.milliseconds)]
        )
        .changed
    }

    func fanOut(_ row: Int64, to tokens: [String], owner: String) throws {
        let claimed = try session.run(
            """
            UPDATE \(tables.queue) SET parts = ?2, due_at = ?3, owner = NULL, uncertain = 0, apns_id = NULL
            WHERE id = ?1 AND status = 'queued' AND owner = ?4 AND parts IS NULL
            """,
            [.int(row), .int(Int64(tokens.count)), .int(RelaySchema.never), .text(owner)]
        )
        guard claimed.changed == 1 else { return }
        for token in tokens {
            try session.run(
                """
                INSERT INTO \(tables.queue) (parent, device_token, topic, payload, priority, expiration, collapse_id, push_type,
                    send_after, give_up_at, environment, service, template, parameters, time_queued)
                SELECT id, ?2, topic, payload, priority, expiration, collapse_id, push_type,
                    send_after, give_up_at, environment, service, template, parameters, time_queued
                FROM \(tables.queue) WHERE id = ?1
                """,
                [.int(row), .text(token)]
            )
        }
    }
}
