package import HeraldModel

extension SQLRelayStore {
    package func claim(_ order: ClaimOrder) async throws -> [QueueRow] {
        let dialect = dialect
        return try await database.write { session in
            // Whose owner is set was claimed before, by somebody who has not said what became of it.
            let claimed = try session.run(
                """
                WITH due AS MATERIALIZED (
                    SELECT id FROM push_queue WHERE status = 'queued' AND due_at <= ?1 ORDER BY due_at, id LIMIT ?2\
                \(dialect.skipLocked)
                )
                UPDATE push_queue SET
                    uncertain = CASE WHEN owner IS NOT NULL THEN 1 ELSE uncertain END,
                    owner = ?3, due_at = ?4, apns_id = coalesce(apns_id, \(dialect.randomUUID))
                WHERE id IN (SELECT id FROM due) RETURNING id
                """,
                [
                    .int(order.now.milliseconds), .int(Int64(order.limit)), .text(order.owner),
                    .int(order.leaseEnd.milliseconds),
                ]
            )
            let ids = claimed.rows.compactMap { $0[0].int }
            guard !ids.isEmpty else { return [] }
            return try SQLRelayStore.rows(ids, session, dialect)
        }
    }

    private static func rows(_ ids: [Int64], _ session: any SQLSession, _ dialect: SQLDialect) throws -> [QueueRow] {
        let columns = QueueColumn.allCases.map { dialect.bounded("q.\($0.rawValue)", $0.limit) }.joined(separator: ", ")
        let result = try session.runOnce(
            """
            SELECT q.id, substr(q.apns_id, 1, 64), q.uncertain, q.attempts, q.parent,
            d.device_token, substr(d.environment, 1, 64), substr(d.service, 1, 64), substr(d.languages, 1, 1024),
            d.registered_at, d.dead_at, \(columns)
            FROM push_queue q LEFT JOIN devices d
            ON d.device_token = lower(substr(q.device_token, 1, 512)) AND d.topic = q.topic
            WHERE q.id IN (\(SQLRelayStore.list(ids))) ORDER BY q.id
            """,
            []
        )
        return result.rows.compactMap { values in
            guard let id = values[0].int else { return nil }
            var device: DeviceEntry?
            if let token = values[5].text {
                var entry = DeviceEntry(token: token, topic: "")
                entry.environment = values[6].text
                entry.service = values[7].text
                entry.languages = LanguageList.read(values[8].text ?? "")
                entry.registered = values[9].text.flatMap(StoredMoment.read)
                entry.died = values[10].text.flatMap(StoredMoment.read)
                device = entry
            }
            return QueueRow(
                id: id,
                apnsID: values[1].text,
                isUncertain: values[2].int == 1,
                attempts: Int(clamping: values[3].int ?? 0),
                parent: values[4].int,
                device: device,
                values: Array(values[11...])
            )
        }
    }

    package func nextDue() async throws -> WallTime? {
        try await database.read { session in
            let result = try session.run("SELECT min(due_at) FROM push_queue WHERE status = 'queued'")
            guard let due = result.rows.first?[0].int, due < RelaySchema.never else { return nil }
            return WallTime(milliseconds: due)
        }
    }

    package func finish(_ outcomes: [RowOutcome], owner: String) async throws -> [FinishedRow] {
        let dialect = dialect
        return try await database.write { session in
            var finished: [FinishedRow] = []
            let parents = Set(outcomes.compactMap(\.parent)).sorted()
            if !parents.isEmpty, !dialect.forUpdate.isEmpty {
                // Two relays that each finish one of a row's last two parts see each other's.
                let sql =
                    "SELECT id FROM push_queue WHERE id IN (\(SQLRelayStore.list(parents))) ORDER BY id\(dialect.forUpdate)"
                _ = try session.runOnce(sql, [])
            }
            for outcome in outcomes {
                if let status = try SQLRelayStore.write(outcome, owner, session) {
                    finished.append(FinishedRow(row: outcome.row, status: status))
                }
            }
            for parent in parents {
                if let status = try SQLRelayStore.close(parent: parent, session) {
                    finished.append(FinishedRow(row: parent, status: status))
                }
            }
            return finished
        }
    }

    /// Writes one outcome; returns what the row became by it, if that is final.
    private static func write(_ outcome: RowOutcome, _ owner: String, _ session: any SQLSession) throws -> FinalStatus?
    {
        switch outcome.change {
        case .final(let status, let reason):
            // Whoever has the claim by now: what the service answered under the row's identifier is the truth.
            let result = try session.run(
                """
                UPDATE push_queue SET status = ?2, reason = ?3, time_sent = ?4, attempts = attempts + ?5, owner = NULL,
                uncertain = 0 WHERE id = ?1 AND status = 'queued'
                """,
                [
                    .int(outcome.row), .text(status.rawValue), .text(reason),
                    status == .sent ? StoredMoment.text(outcome.time) : .null,
                    .int(status == .sent || status == .refused ? 1 : 0),
                ]
            )
            return result.changed > 0 ? status : nil
        case .later(let moment, let reason, let uncertain, let counts):
            try session.run(
                """
                UPDATE push_queue SET due_at = ?2, reason = ?3, uncertain = ?4, attempts = attempts + ?5, owner = NULL
                WHERE id = ?1 AND status = 'queued' AND owner = ?6
                """,
                [
                    .int(outcome.row), .int(min(moment.milliseconds, RelaySchema.never - 1)), .text(reason),
                    .int(uncertain ? 1 : 0), .int(counts ? 1 : 0), .text(owner),
                ]
            )
            return nil
        }
    }

    /// Makes a row for many tokens final once its parts are.
    private static func close(parent: Int64, _ session: any SQLSession) throws -> FinalStatus? {
        let result = try session.run(
            "SELECT status, count(*), max(time_sent), min(reason) FROM push_queue WHERE parent = ?1 GROUP BY status",
            [.int(parent)]
        )
        var counts: [String: Int64] = [:]
        for row in result.rows { counts[row[0].text ?? ""] = row[1].int ?? 0 }
        let total = counts.values.reduce(0, +)
        guard total > 0, counts["queued"] == nil else { return nil }
        let sent = counts[FinalStatus.sent.rawValue] ?? 0
        let order: [FinalStatus] = [.sent, .refused, .failed, .expired]
        guard let status = order.first(where: { counts[$0.rawValue] != nil }) else { return nil }
        let row = result.rows.first { $0[0].text == status.rawValue }
        let reason = sent == total ? nil : sent == 0 ? row?[3].text : "sent to \(sent) of \(total)"
        let time = status == .sent ? row?[2] : nil
        let changed = try session.run(
            "UPDATE push_queue SET status = ?2, reason = ?3, time_sent = ?4 WHERE id = ?1 AND status = 'queued'",
            [.int(parent), .text(status.rawValue), .text(reason), time ?? .null]
        )
        return changed.changed > 0 ? status : nil
    }

    package func extend(_ rows: [Int64], owner: String, until: WallTime) async throws {
        guard !rows.isEmpty else { return }
        _ = try await database.write { session in
            try session.runOnce(
                "UPDATE push_queue SET due_at = ?2 WHERE owner = ?1 AND status = 'queued' AND id IN (\(SQLRelayStore.list(rows)))",
                [.text(owner), .int(until.milliseconds)]
            )
            .changed
        }
    }

    package func takeOver(at moment: WallTime) async throws -> Int {
        try await database.write { session in
            try session.run(
                "UPDATE push_queue SET due_at = ?1 WHERE owner IS NOT NULL AND status = 'queued' AND due_at > ?1",
                [.int(moment.milliseconds)]
            )
            .changed
        }
    }

    package func spread(_ row: Int64, to tokens: [String], owner: String) async throws {
        try await database.write { session in
            let claimed = try session.run(
                """
                UPDATE push_queue SET parts = ?2, due_at = ?3, owner = NULL, uncertain = 0, apns_id = NULL
                WHERE id = ?1 AND status = 'queued' AND owner = ?4 AND parts IS NULL
                """,
                [.int(row), .int(Int64(tokens.count)), .int(RelaySchema.never), .text(owner)]
            )
            guard claimed.changed == 1 else { return }
            for token in tokens {
                try session.run(
                    """
                    INSERT INTO push_queue (parent, device_token, topic, payload, priority, expiration, collapse_id, push_type,
                        send_after, give_up_at, environment, service, template, parameters, time_queued)
                    SELECT id, ?2, topic, payload, priority, expiration, collapse_id, push_type,
                        send_after, give_up_at, environment, service, template, parameters, time_queued
                    FROM push_queue WHERE id = ?1
                    """,
                    [.int(row), .text(token)]
                )
            }
        }
    }
}
