import HeraldModel

/// Statements about devices and templates, within one transaction.
struct DeviceQueries {
    /// Condition for a device that is not dead, or was registered again since.
    private static let isLive = "(dead_at IS NULL OR registered_at > dead_at)"

    let session: any SQLSession

    func tokens(of user: String, topic: String, limit: Int) throws -> [String] {
        let sql = """
            SELECT device_token FROM devices WHERE user_name = ?1 AND topic = ?2 AND \(Self.isLive)
            ORDER BY device_token LIMIT ?3
            """
        return try session.run(sql, [.text(user), .text(topic), .int(Int64(limit))]).rows.compactMap { $0[0].text }
    }

    func template(_ name: String) throws -> [String: String] {
        let rows = try session.run("SELECT language, payload FROM push_templates WHERE name = ?1", [.text(name)])
            .rows
        return Dictionary(
            rows.compactMap { row in row[0].text.flatMap { language in row[1].text.map { (language, $0) } } },
            uniquingKeysWith: { first, _ in first }
        )
    }

    func register(_ device: DeviceEntry) throws {
        let registered = StoredMoment.exactText(device.registered ?? WallTime(seconds: 0))
        let languages = SQLValue.text(device.languages.isEmpty ? nil : device.languages.joined(separator: ","))
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
                .text(device.service), .text(device.userName), languages, registered,
            ]
        )
    }
}
