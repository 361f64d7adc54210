/// Checks and creates the relay's tables.
struct TablePreparation {
    let database: any SQLDatabase

    /// Checks the tables, and creates the missing ones.
    /// - Returns: Warnings for an operator.
    /// - Throws: ``RelayStoreError``.
    func run() async throws -> [String] {
        let tables = database.tables
        let missing = try await missingParts()
        // First, so that nothing is created beside the tables of another program.
        for (table, columns) in columns where !missing.contains(table) { try await check(table, columns) }
        var warnings: [String] = []
        if !missing.isEmpty {
            do {
                try await create()
            } catch let error as RelayStoreError where error.code == .failed {
                // Only the owner of a table can give it a trigger, and the relay itself does not need this one.
                guard missing == [tables.resend] else {
                    throw RelayStoreError(
                        .unusable,
                        """
                        the queue lacks \(missing.joined(separator: ", ")), and the relay cannot create what is missing \
                        (\(error.message)): run the SQL of `\(tables.schemaCommand)` as the owner of the tables
                        """
                    )
                }
                warnings.append(
                    """
                    the queue lacks \(tables.resend): a sent row whose time_sent is set to NULL is not sent again; \
                    run the SQL of `\(tables.schemaCommand)` as the owner of the table
                    """
                )
            }
        }
        for (table, columns) in columns { try await check(table, columns) }
        return warnings + (try await database.warnings())
    }

    private func create() async throws {
        try await database.write { session in
            // Several relays may start at the same time.
            if session.dialect == .postgresql { try session.run("SELECT pg_advisory_xact_lock(5223, 2197)") }
            for statement in RelaySchema.statements(session.dialect, session.tables) {
                _ = try session.runOnce(statement, [])
            }
        }
    }

    /// The columns that the relay uses, in its own spelling, which also needs their types.
    private var columns: [(table: String, columns: String)] {
        let (tables, dialect) = (database.tables, database.dialect)
        let written = QueueColumn.allCases.map { dialect.selection($0) }.joined(separator: ", ")
        let sent = dialect.time("time_sent")
        let times = ["registered_at", "dead_at", "held_at"].map { dialect.milliseconds($0) }.joined(separator: ", ")
        return [
            (
                tables.queue,
                "id, \(written), status, reason, detail, apns_id, attempts, \(sent), due_at, owner, uncertain, parent, parts"
            ),
            (
                tables.devices,
                "device_token, topic, environment, service, user_name, languages, \(times), evidence"
            ),
            (tables.templates, "name, language, payload"),
            (tables.breakers, "app, topic, dead_tokens, answers, \(dialect.time("since"))"),
        ]
    }

    /// Checks that a table is the relay's.
    private func check(_ table: String, _ columns: String) async throws {
        do {
            try await database.read { _ = try $0.runOnce("SELECT \(columns) FROM \(table) LIMIT 0", []) }
        } catch let error as RelayStoreError where error.code == .failed {
            let tables = database.tables
            guard !error.isDenied else {
                throw RelayStoreError(
                    .unusable,
                    "the relay's user needs rights on the table \(table): \(error.message)"
                )
            }
            let other = tables.prefix.isEmpty ? "herald_" : tables.prefix + "relay_"
            throw RelayStoreError(
                .unusable,
                """
                the table \(table) has other columns than the relay's (\(error.message)): if it is another program's, give \
                the relay's tables other names with `--table-prefix \(other)` (`herald relay schema --table-prefix \(other)` \
                prints their SQL); if it is the relay's, compare it with `\(tables.schemaCommand)`
                """
            )
        }
    }

    /// Tables, views and triggers that the database does not have.
    func missingParts() async throws -> [String] {
        try await database.read { session in
            let tables = session.tables
            let names = [
                tables.queue, tables.devices, tables.templates, tables.outcomes, tables.breakers, tables.resend,
            ]
            let sql =
                session.dialect == .sqlite
                ? "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view', 'trigger')"
                : """
                SELECT 1 WHERE to_regclass(?1) IS NOT NULL OR EXISTS
                (SELECT 1 FROM pg_trigger WHERE tgname = ?1::text AND tgrelid = to_regclass('\(tables.queue)'))
                """
            return try names.filter { try session.run(sql, [.text($0)]).rows.isEmpty }
        }
    }
}
