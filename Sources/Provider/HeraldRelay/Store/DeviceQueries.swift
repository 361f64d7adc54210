import HeraldModel

/// Statements about devices and templates, within one transaction.
struct DeviceQueries {
    let session: any SQLSession
    private var tables: TableNames { session.tables }

    func tokens(of user: String, topic: String, limit: Int) throws -> [String] {
        let sql = """
            SELECT device_token FROM \(tables.devices) WHERE user_name = ?1 AND topic = ?2
            AND \(session.dialect.isDead(tables.devices)) IS NOT TRUE ORDER BY device_token LIMIT ?3
            """
        return try session.run(sql, [.text(user), .text(topic), .int(Int64(limit))]).rows
            .compactMap { try $0[0].text }
    }

    func template(_ name: String) throws -> [String: String] {
        let rows = try session.run("SELECT language, payload FROM \(tables.templates) WHERE name = ?1", [.text(name)])
            .rows
        return Dictionary(
            try rows.compactMap { row in
                guard let language = try row[0].text, let payload = try row[1].text else { return nil }
                return (language, payload)
            },
            uniquingKeysWith: { first, _ in first }
        )
    }

    func register(_ device: RelayDevice) throws {
        let registered = StoredMoment.exactText(device.registered ?? WallTime(seconds: 0))
        let languages = SQLValue.text(device.languages.isEmpty ? nil : device.languages.joined(separator: ","))
        try session.run(
            """
            INSERT INTO \(tables.devices) (device_token, topic, environment, service, user_name, languages, registered_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (device_token, topic) DO UPDATE SET environment = excluded.environment,
            service = excluded.service, user_name = excluded.user_name, languages = excluded.languages,
            registered_at = excluded.registered_at, dead_at = NULL, held_at = NULL, evidence = NULL
            """,
            [
                .text(device.token.lowercased()), .text(device.topic), .text(device.environment),
                .text(device.service), .text(device.userName), languages, registered,
            ]
        )
    }
}
