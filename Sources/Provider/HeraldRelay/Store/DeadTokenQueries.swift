import HeraldModel

/// Statements about dead device tokens and open breakers, within one transaction.
///
/// A device whose token is dead has `dead_at`, or `held_at` while marking is suspended.
struct DeadTokenQueries {
    let session: any SQLSession
    private var dialect: SQLDialect { session.dialect }
    private var tables: TableNames { session.tables }

    func markDead(_ tokens: [DeadToken], held: Bool) throws -> Int {
        let column = held ? "held_at" : "dead_at"
        let devices = tables.devices
        let registered = "\(devices).registered_at"
        // In SQLite a time that cannot be read keeps no token alive.
        let isOlder =
            dialect == .sqlite
            ? "coalesce(\(dialect.milliseconds(registered)) < \(dialect.milliseconds("excluded.\(column)")), 1)"
            : "\(registered) < excluded.\(column)"
        var count = 0
        for dead in tokens {
            let result = try session.run(
                """
                INSERT INTO \(devices) (device_token, topic, registered_at, \(column), evidence) VALUES (?1, ?2, NULL, ?3, ?4)
                ON CONFLICT (device_token, topic) DO UPDATE SET \(column) = excluded.\(column), evidence = excluded.evidence
                WHERE (\(registered) IS NULL OR \(isOlder)) AND \(dialect.isDead(devices)) IS NOT TRUE
                """,
                [.text(dead.token), .text(dead.topic), StoredMoment.exactText(dead.time), .text(dead.evidence)]
            )
            count += result.changed
        }
        return count
    }

    func revive(_ selection: TokenSelection) throws -> Revival {
        let (conditions, arguments) = conditions(selection)
        let sql = "UPDATE \(tables.devices) SET dead_at = NULL, held_at = NULL, evidence = NULL WHERE \(conditions)"
        let count = try session.runOnce(sql, arguments).changed
        return Revival(tokens: count, breakers: try resetBreakers(selection))
    }

    /// Finds what a selection leaves out although a user may expect it in there.
    func leftOut(_ selection: TokenSelection) throws -> LeftOutTokens {
        var left = LeftOutTokens()
        if let tokens = selection.tokens {
            let (conditions, arguments) = conditions(selection)
            let rows = try session.runOnce(
                """
                SELECT device_token, max(CASE WHEN \(conditions) THEN 2 WHEN \(Self.isMarked) THEN 1 ELSE 0 END)
                FROM \(tables.devices) WHERE device_token IN (\(places(tokens))) GROUP BY device_token
                """,
                arguments
            )
            .rows
            var found: [String: Int64] = [:]
            for row in rows { found[try row[0].text ?? ""] = try row[1].int }
            for token in tokens where found[token.lowercased()] != 2 {
                let state = found[token.lowercased()]
                left.named.append((token, state != nil, state == 1))
            }
        }
        if selection.since != nil {
            var ageless = selection
            ageless.since = nil
            let (conditions, arguments) = conditions(ageless)
            let sql = "SELECT count(*) FROM \(tables.devices) WHERE \(conditions) AND (\(died)) IS NULL"
            left.undated = Int(clamping: try session.runOnce(sql, arguments).rows.first?[0].int ?? 0)
        }
        return left
    }

    private static let isMarked = "(dead_at IS NOT NULL OR held_at IS NOT NULL)"
    private var died: String { dialect.milliseconds("coalesce(dead_at, held_at)") }

    private func places(_ tokens: [String]) -> String {
        tokens.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    }

    /// The conditions of a selection; its tokens are the first arguments.
    private func conditions(_ selection: TokenSelection) -> (String, [SQLValue]) {
        var conditions = [Self.isMarked]
        var arguments: [SQLValue] = []
        if let tokens = selection.tokens {
            arguments += tokens.map { .text($0.lowercased()) }
            conditions.append(tokens.isEmpty ? "1 = 0" : "device_token IN (\(places(tokens)))")
        }
        if let topic = selection.topic {
            arguments.append(.text(topic))
            conditions.append("topic = ?\(arguments.count)")
        }
        if let since = selection.since { conditions.append("(\(died)) >= \(since.milliseconds)") }
        return (conditions.joined(separator: " AND "), arguments)
    }

    private func resetBreakers(_ selection: TokenSelection) throws -> [String] {
        guard selection.includesBreakers else { return [] }
        let found =
            if let topic = selection.topic {
                try session.run("DELETE FROM \(tables.breakers) WHERE topic = ?1 RETURNING app", [.text(topic)])
            } else {
                try session.run("DELETE FROM \(tables.breakers) RETURNING app")
            }
        return try found.rows.compactMap { try $0[0].text }.sorted()
    }

    func save(_ trip: DeadTokenBreaker.Trip) throws {
        try session.run(
            """
            INSERT INTO \(tables.breakers) (app, topic, dead_tokens, answers, since) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (app) DO NOTHING
            """,
            [
                .text(trip.app), .text(trip.topic), .int(Int64(trip.deadTokens)), .int(Int64(trip.answers)),
                StoredMoment.exactText(trip.since),
            ]
        )
    }

    func breakers() throws -> [QueueProgress.Breaker] {
        let since = dialect.time("since")
        return try session.run("SELECT app, dead_tokens, answers, \(since) FROM \(tables.breakers) ORDER BY app").rows
            .map {
                QueueProgress.Breaker(
                    app: try $0[0].text ?? "",
                    deadTokens: Int(clamping: try $0[1].int ?? 0),
                    answers: Int(clamping: try $0[2].int ?? 0),
                    since: (dialect.moment(try $0[3]) ?? WallTime(seconds: 0)).rfc3339
                )
            }
    }
}
