import Foundation
package import HeraldModel

extension SQLRelayStore {
    /// What makes a device live: it is not dead, or was registered since.
    private static let isLive = "(dead_at IS NULL OR registered_at > dead_at)"

    package func tokens(of user: String, topic: String, limit: Int) async throws -> [String] {
        try await database.read { session in
            let sql = """
                SELECT device_token FROM devices WHERE user_name = ?1 AND topic = ?2 AND \(SQLRelayStore.isLive)
                ORDER BY device_token LIMIT ?3
                """
            return try session.run(sql, [.text(user), .text(topic), .int(Int64(limit))]).rows.compactMap { $0[0].text }
        }
    }

    package func template(_ name: String) async throws -> [String: String] {
        try await database.read { session in
            let rows = try session.run("SELECT language, payload FROM push_templates WHERE name = ?1", [.text(name)])
                .rows
            return Dictionary(
                rows.compactMap { row in row[0].text.flatMap { language in row[1].text.map { (language, $0) } } },
                uniquingKeysWith: { first, _ in first }
            )
        }
    }

    package func bury(_ deaths: [Death], held: Bool) async throws -> Int {
        let column = held ? "held_at" : "dead_at"
        return try await database.write { session in
            var count = 0
            for death in deaths {
                let result = try session.run(
                    """
                    INSERT INTO devices (device_token, topic, registered_at, \(column), evidence) VALUES (?1, ?2, NULL, ?3, ?4)
                    ON CONFLICT (device_token, topic) DO UPDATE SET \(column) = excluded.\(column), evidence = excluded.evidence
                    WHERE (devices.registered_at IS NULL OR devices.registered_at < excluded.\(column))
                    AND (devices.dead_at IS NULL OR devices.registered_at > devices.dead_at)
                    """,
                    [.text(death.token), .text(death.topic), StoredMoment.exactText(death.time), .text(death.evidence)]
                )
                count += result.changed
            }
            return count
        }
    }

    package func revive(_ selection: DeviceSelection, at: WallTime) async throws -> Revival {
        var conditions = ["(dead_at IS NOT NULL OR held_at IS NOT NULL)"]
        var arguments: [SQLValue] = []
        func add(_ condition: (String) -> String, _ value: SQLValue) {
            arguments.append(value)
            conditions.append(condition("?\(arguments.count)"))
        }
        if let topic = selection.topic { add({ "topic = \($0)" }, .text(topic)) }
        if let since = selection.since { add({ "coalesce(dead_at, held_at) >= \($0)" }, StoredMoment.exactText(since)) }
        let common = (conditions, arguments)
        let groups: [[String]?] = selection.tokens.map { [$0] } ?? [nil]
        return try await database.write { session in
            var count = 0
            for group in groups {
                var (conditions, arguments) = common
                if let group {
                    let first = arguments.count + 1
                    arguments += group.map { .text($0.lowercased()) }
                    let places = group.indices.map { "?\(first + $0)" }.joined(separator: ", ")
                    conditions.append(group.isEmpty ? "1 = 0" : "device_token IN (\(places))")
                }
                let sql = """
                    UPDATE devices SET dead_at = NULL, held_at = NULL, evidence = NULL WHERE \
                    \(conditions.joined(separator: " AND "))
                    """
                count += try session.runOnce(sql, arguments).changed
            }
            return Revival(tokens: count, brakes: try SQLRelayStore.release(selection, session))
        }
    }

    private static func release(_ selection: DeviceSelection, _ session: any SQLSession) throws -> [String] {
        guard selection.meansBrakes else { return [] }
        let found =
            if let topic = selection.topic {
                try session.run("DELETE FROM push_brakes WHERE topic = ?1 RETURNING app", [.text(topic)])
            } else {
                try session.run("DELETE FROM push_brakes RETURNING app")
            }
        return found.rows.compactMap { $0[0].text }.sorted()
    }

    package func keep(_ brake: DeathBrake.Alarm) async throws {
        _ = try await database.write { session in
            try session.run(
                """
                INSERT INTO push_brakes (app, topic, deaths, answers, since) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (app) DO NOTHING
                """,
                [
                    .text(brake.app), .text(brake.topic), .int(Int64(brake.deaths)), .int(Int64(brake.answers)),
                    StoredMoment.exactText(brake.since),
                ]
            )
        }
    }

    static func brakes(_ session: any SQLSession) throws -> [QueueProgress.Brake] {
        try session.run("SELECT app, deaths, answers, since FROM push_brakes ORDER BY app").rows.map { row in
            QueueProgress.Brake(
                app: row[0].text ?? "",
                deaths: Int(clamping: row[1].int ?? 0),
                answers: Int(clamping: row[2].int ?? 0),
                since: (row[3].text.flatMap(StoredMoment.read) ?? WallTime(seconds: 0)).rfc3339
            )
        }
    }

    package func register(_ device: DeviceEntry) async throws {
        let registered = StoredMoment.exactText(device.registered ?? WallTime(seconds: 0))
        let languages = SQLValue.text(device.languages.isEmpty ? nil : device.languages.joined(separator: ","))
        _ = try await database.write { session in
            try session.run(
                """
                INSERT INTO devices (device_token, topic, environment, service, user_name, languages, registered_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                ON CONFLICT (device_token, topic) DO UPDATE SET environment = excluded.environment,
                service = excluded.service, user_name = excluded.user_name, languages = excluded.languages,
                registered_at = excluded.registered_at, dead_at = NULL, held_at = NULL, evidence = NULL
                """,
                [
                    .text(device.token.lowercased()), .text(device.topic), .text(device.environment),
                    .text(device.service), .text(device.user), languages, registered,
                ]
            )
        }
    }
}
