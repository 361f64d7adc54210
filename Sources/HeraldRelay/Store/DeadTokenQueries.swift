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

    func revive(_ selection: DeviceSelection) throws -> Revival {
        var conditions = ["(dead_at IS NOT NULL OR held_at IS NOT NULL)"]
        var arguments: [SQLValue] = []
        func add(_ condition: (String) -> String, _ value: SQLValue) {
            arguments.append(value)
            conditions.append(condition("?\(arguments.count)"))
        }
        if let topic = selection.topic { add({ "topic = \($0)" }, .text(topic)) }
        if let since = selection.since {
            let died = dialect.milliseconds("coalesce(dead_at, held_at)")
            conditions.append("(\(died)) >= \(since.milliseconds)")
        }
        if let tokens = selection.tokens {
            let first = arguments.count + 1
            arguments += tokens.map { .text($0.lowercased()) }
            let places = tokens.indices.map { "?\(first + $0)" }.joined(separator: ", ")
            conditions.append(tokens.isEmpty ? "1 = 0" : "device_token IN (\(places))")
        }
        let sql = """
            UPDATE \(tables.devices) SET dead_at = NULL, held_at = NULL, evidence = NULL WHERE \
            \(conditions.joined(separator: " AND "))
            """
        let count = try session.runOnce(sql, arguments).changed
        return Revival(tokens: count, breakers: try resetBreakers(selection))
    }

    private func resetBreakers(_ selection: DeviceSelection) throws -> [String] {
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
