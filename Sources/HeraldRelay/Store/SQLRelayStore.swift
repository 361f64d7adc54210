import HeraldModel

/// The contract on SQL: the same statements in both databases, but for what ``SQLDialect`` spells.
package struct SQLRelayStore: RelayStore {
    let database: any SQLDatabase
    var dialect: SQLDialect { database.dialect }

    init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// Opens the database of an address; connects with the first call where it is a server.
    /// - Throws: ``RelayStoreError``.
    package static func open(_ address: DatabaseAddress) throws -> SQLRelayStore {
        switch address {
        case .sqlite(let path): SQLRelayStore(try SQLiteDatabase(path: path))
        case .postgresql(let address): SQLRelayStore(PostgresDatabase(address: address))
        }
    }

    /// The statements that make the tables, as a script.
    package static func schema(_ address: DatabaseAddress) -> String {
        switch address {
        case .sqlite: RelaySchema.script(.sqlite)
        case .postgresql: RelaySchema.script(.postgresql)
        }
    }

    /// Whether the database holds a queue already; nothing is made.
    package func hasQueue() async throws -> Bool {
        let dialect = dialect
        return try await database.read { !(try SQLRelayStore.missingTables($0, dialect).contains("push_queue")) }
    }

    package func prepare() async throws {
        let dialect = dialect
        let missing = try await database.read { session in try SQLRelayStore.missingTables(session, dialect) }
        if !missing.isEmpty {
            try await database.write { session in
                // Several relays may start at a time.
                if dialect == .postgresql { try session.run("SELECT pg_advisory_xact_lock(5223, 2197)") }
                for statement in RelaySchema.statements(dialect) { _ = try session.runOnce(statement, []) }
            }
        }
        do {
            try await database.read { session in
                let columns = QueueColumn.allCases.map(\.rawValue).joined(separator: ", ")
                _ = try session.runOnce(
                    """
                    SELECT id, \(columns), status, reason, apns_id, attempts, time_sent, due_at, owner, uncertain, parent, parts
                    FROM push_queue LIMIT 0
                    """,
                    []
                )
                _ = try session.runOnce(
                    """
                    SELECT device_token, topic, environment, service, user_name, languages, registered_at, dead_at, held_at,
                    evidence FROM devices LIMIT 0
                    """,
                    []
                )
                _ = try session.runOnce("SELECT name, language, payload FROM push_templates LIMIT 0", [])
                _ = try session.runOnce("SELECT app, topic, deaths, answers, since FROM push_brakes LIMIT 0", [])
            }
        } catch let error as RelayStoreError where error.code == .failed {
            throw RelayStoreError(
                .unusable,
                "the relay's tables are there, but not as they must be (\(error.message)): compare with `herald relay schema`"
            )
        }
    }

    private static func missingTables(_ session: any SQLSession, _ dialect: SQLDialect) throws -> [String] {
        let names = ["push_queue", "devices", "push_templates", "push_outcomes", "push_brakes"]
        return try names.filter { name in
            let sql =
                dialect == .sqlite
                ? "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view')"
                : "SELECT 1 WHERE to_regclass(?1) IS NOT NULL"
            return try session.run(sql, [.text(name)]).rows.isEmpty
        }
    }

    package func changes() -> AsyncStream<Void> {
        database.changes()
    }

    package func close() async {
        await database.close()
    }

    /// Numbers as a list within a statement; a number cannot be anything else.
    static func list(_ numbers: some Sequence<Int64>) -> String {
        numbers.map(String.init).joined(separator: ",")
    }
}
