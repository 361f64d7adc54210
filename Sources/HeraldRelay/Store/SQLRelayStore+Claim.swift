package import HeraldModel

extension SQLRelayStore {
    /// How many rows for many tokens are looked at in one go, each with all of its parts at the worst.
    private static let settledAtOnce = 100

    package func claim(_ order: ClaimOrder) async throws -> [QueueRow] {
        let dialect = dialect
        return try await database.write { session in
            // What waited for a next try, or for its owner's lease, comes first, for half of the room: rows that were never
            // tried are due since ever, and a long queue of them would leave it behind.
            let late = try SQLRelayStore.claim((order.limit + 1) / 2, "due_at > 0", order, session, dialect)
            let ids = try late + SQLRelayStore.claim(order.limit - late.count, "1 = 1", order, session, dialect)
            guard !ids.isEmpty else { return [] }
            return try SQLRelayStore.rows(ids, session, dialect)
        }
    }

    private static func claim(
        _ limit: Int,
        _ condition: String,
        _ order: ClaimOrder,
        _ session: any SQLSession,
        _ dialect: SQLDialect
    ) throws -> [Int64] {
        guard limit > 0 else { return [] }
        // Whose owner is set was claimed before, by somebody who has not said what became of it; this one's own claims are
        // due again no sooner than their lease ends.
        return try session.run(
            """
            WITH due AS MATERIALIZED (
                SELECT id FROM push_queue WHERE status = 'queued' AND due_at <= ?1 AND \(condition)
                ORDER BY due_at, id LIMIT ?2\(dialect.skipLocked)
            )
            UPDATE push_queue SET
                uncertain = CASE WHEN owner IS NOT NULL AND uncertain = 0 THEN 1 ELSE uncertain END,
                owner = ?3, due_at = ?4, apns_id = coalesce(apns_id, \(dialect.randomUUID))
            WHERE id IN (SELECT id FROM due) RETURNING id
            """,
            [.int(order.now.milliseconds), .int(Int64(limit)), .text(order.owner), .int(order.leaseEnd.milliseconds)]
        )
        .rows.compactMap { $0[0].int }
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
                isUncertain: (values[2].int ?? 0) > 0,
                questions: Int(clamping: max(0, (values[2].int ?? 0) - 1)),
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
            for stroke in SQLRelayStore.strokes(outcomes) {
                finished += try SQLRelayStore.write(stroke.change, stroke.time, stroke.rows, owner, session)
            }
            for parent in parents {
                if let status = try SQLRelayStore.close(parent: parent, session) {
                    finished.append(FinishedRow(row: parent, status: status))
                }
            }
            return finished
        }
    }

    /// Puts together what is written with one statement: most rows of a second become the same.
    private static func strokes(
        _ outcomes: [RowOutcome]
    ) -> [(change: RowOutcome.Change, time: SQLValue, rows: [Int64])] {
        struct Key: Hashable {
            let change: RowOutcome.Change
            let time: SQLValue
        }
        var strokes: [(change: RowOutcome.Change, time: SQLValue, rows: [Int64])] = []
        var places: [Key: Int] = [:]
        for outcome in outcomes {
            var time = SQLValue.null
            if case .final(.sent, _) = outcome.change { time = StoredMoment.text(outcome.time) }
            let key = Key(change: outcome.change, time: time)
            if let place = places[key] {
                strokes[place].rows.append(outcome.row)
            } else {
                places[key] = strokes.count
                strokes.append((outcome.change, time, [outcome.row]))
            }
        }
        return strokes
    }

    /// Writes what some rows become alike.
    /// - Returns: The rows that became final by it.
    private static func write(
        _ change: RowOutcome.Change,
        _ time: SQLValue,
        _ rows: [Int64],
        _ owner: String,
        _ session: any SQLSession
    ) throws -> [FinishedRow] {
        switch change {
        case .final(let status, let reason):
            // Whoever has the claim by now: what the service answered under the row's identifier is the truth.
            let result = try update(
                "status = ?1, reason = ?2, time_sent = ?3, attempts = attempts + ?4, owner = NULL, uncertain = 0",
                [.text(status.rawValue), .text(reason), time, .int(status == .sent || status == .refused ? 1 : 0)],
                rows,
                and: "status = 'queued'",
                session
            )
            return result.rows.compactMap { $0[0].int }.map { FinishedRow(row: $0, status: status) }
        case .later(let moment, let reason, let uncertain, let counts):
            try putOff(rows, moment, reason, uncertain: uncertain ? 1 : 0, tries: counts ? 1 : 0, owner, session)
        case .ask(let moment, let reason, let questions):
            try putOff(rows, moment, reason, uncertain: 1 + max(0, questions), tries: 0, owner, session)
        }
        return []
    }

    private static func putOff(
        _ rows: [Int64],
        _ moment: WallTime,
        _ reason: String?,
        uncertain: Int,
        tries: Int,
        _ owner: String,
        _ session: any SQLSession
    ) throws {
        _ = try update(
            "due_at = ?1, reason = ?2, uncertain = ?3, attempts = attempts + ?4, owner = NULL",
            [
                .int(min(moment.milliseconds, RelaySchema.never - 1)), .text(reason), .int(Int64(uncertain)),
                .int(Int64(tries)), .text(owner),
            ],
            rows,
            and: "status = 'queued' AND owner = ?5",
            session
        )
    }

    /// Changes rows with one statement; a single one with a statement that is prepared once.
    private static func update(
        _ what: String,
        _ arguments: [SQLValue],
        _ rows: [Int64],
        and condition: String,
        _ session: any SQLSession
    ) throws -> SQLResult {
        let start = "UPDATE push_queue SET \(what) WHERE \(condition) AND id"
        if rows.count == 1, let row = rows.first {
            return try session.run("\(start) = ?\(arguments.count + 1) RETURNING id", arguments + [.int(row)])
        }
        return try session.runOnce("\(start) IN (\(list(rows))) RETURNING id", arguments)
    }

    package func settle(after last: Int64) async throws -> (finished: [FinishedRow], last: Int64?) {
        let dialect = dialect
        let limit = SQLRelayStore.settledAtOnce
        let rows = try await database.read { session in
            try session.run(
                """
                SELECT p.id, EXISTS (SELECT 1 FROM push_queue q WHERE q.parent = p.id AND q.status = 'queued')
                FROM (SELECT id FROM push_queue WHERE status = 'queued' AND due_at = \(RelaySchema.never)
                AND parts IS NOT NULL AND id > ?1 ORDER BY id LIMIT \(limit)) p ORDER BY p.id
                """,
                [.int(last)]
            )
            .rows
        }
        let next = rows.count == limit ? rows.last?[0].int : nil
        let abandoned = rows.filter { !["1", "t"].contains($0[1].text ?? "") }.compactMap { $0[0].int }
        guard !abandoned.isEmpty else { return ([], next) }
        let finished = try await database.write { session in
            if !dialect.forUpdate.isEmpty {
                let list = SQLRelayStore.list(abandoned)
                _ = try session.runOnce(
                    "SELECT id FROM push_queue WHERE id IN (\(list)) ORDER BY id\(dialect.forUpdate)",
                    []
                )
            }
            return try abandoned.compactMap { row in
                try SQLRelayStore.close(parent: row, session).map { FinishedRow(row: row, status: $0) }
            }
        }
        return (finished, next)
    }

    /// Makes a row for many tokens final once its parts are; those that somebody deleted count as not sent.
    private static func close(parent: Int64, _ session: any SQLSession) throws -> FinalStatus? {
        let made = try session.run("SELECT parts FROM push_queue WHERE id = ?1", [.int(parent)]).rows.first?[0].int ?? 0
        let result = try session.run(
            "SELECT status, count(*), max(time_sent), min(reason) FROM push_queue WHERE parent = ?1 GROUP BY status",
            [.int(parent)]
        )
        var counts: [String: Int64] = [:]
        for row in result.rows { counts[row[0].text ?? ""] = row[1].int ?? 0 }
        guard made > 0, counts["queued"] == nil else { return nil }
        let total = max(made, counts.values.reduce(0, +))
        let sent = counts[FinalStatus.sent.rawValue] ?? 0
        let order: [FinalStatus] = [.sent, .refused, .failed, .expired]
        let status = order.first { counts[$0.rawValue] != nil } ?? .failed
        let row = result.rows.first { $0[0].text == status.rawValue }
        let reason: String? =
            if sent == total { nil } else if sent > 0 { "sent to \(sent) of \(total)" } else if let row {
                row[3].text
            } else {
                "PartsDeleted"
            }
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
