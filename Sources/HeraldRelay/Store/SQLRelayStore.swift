package import HeraldModel

/// A ``RelayStore`` on SQL; the statements are the same for both databases, except for ``SQLDialect``.
package struct SQLRelayStore: RelayStore {
    /// Interval at which a probe looks for progress.
    private static let probePause = Duration.milliseconds(250)

    let database: any SQLDatabase
    private var dialect: SQLDialect { database.dialect }

    init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// Opens a database; PostgreSQL is connected at the first call.
    /// - Throws: ``RelayStoreError``.
    package static func open(_ address: DatabaseAddress) throws -> SQLRelayStore {
        switch address {
        case .sqlite(let path): SQLRelayStore(try SQLiteDatabase(path: path))
        case .postgresql(let address): SQLRelayStore(PostgresDatabase(address: address))
        }
    }

    /// The statements that create the tables, as a script.
    package static func schema(_ address: DatabaseAddress) -> String {
        switch address {
        case .sqlite: RelaySchema.script(.sqlite)
        case .postgresql: RelaySchema.script(.postgresql)
        }
    }

    /// Whether the database already holds a queue.
    package func hasQueue() async throws -> Bool {
        let dialect = dialect
        return try await database.read { !(try Self.missingParts($0, dialect).contains("push_queue")) }
    }

    @discardableResult
    package func prepare() async throws -> String? {
        let dialect = dialect
        let missing = try await database.read { session in try Self.missingParts(session, dialect) }
        var warning: String?
        if !missing.isEmpty {
            do {
                try await database.write { session in
                    // Several relays may start at the same time.
                    if dialect == .postgresql { try session.run("SELECT pg_advisory_xact_lock(5223, 2197)") }
                    for statement in RelaySchema.statements(dialect) { _ = try session.runOnce(statement, []) }
                }
            } catch let error as RelayStoreError where error.code == .failed {
                // Only the owner of a table can give it a trigger, and the relay itself does not need this one.
                guard missing == [RelaySchema.resend] else {
                    throw RelayStoreError(
                        .unusable,
                        """
                        the queue lacks \(missing.joined(separator: ", ")), and the relay cannot create what is missing \
                        (\(error.message)): run the SQL of `herald relay schema` as the owner of the tables
                        """
                    )
                }
                warning = """
                    the queue lacks \(RelaySchema.resend): a sent row whose time_sent is set to NULL is not sent again; \
                    run the SQL of `herald relay schema` as the owner of the table
                    """
            }
        }
        do {
            try await database.read { session in
                let columns = QueueColumn.allCases.map(\.name).joined(separator: ", ")
                _ = try session.runOnce(
                    """
                    SELECT id, \(columns), status, reason, detail, apns_id, attempts, time_sent, due_at, owner, uncertain,
                    parent, parts FROM push_queue LIMIT 0
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
                _ = try session.runOnce("SELECT app, topic, dead_tokens, answers, since FROM push_breakers LIMIT 0", [])
            }
        } catch let error as RelayStoreError where error.code == .failed {
            throw RelayStoreError(
                .unusable,
                "the relay's tables have other columns than expected (\(error.message)): compare with `herald relay schema`"
            )
        }
        return warning
    }

    /// Tables, views and triggers that the database does not have.
    private static func missingParts(_ session: any SQLSession, _ dialect: SQLDialect) throws -> [String] {
        let names = ["push_queue", "devices", "push_templates", "push_outcomes", "push_breakers", RelaySchema.resend]
        return try names.filter { name in
            let sql =
                dialect == .sqlite
                ? "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view', 'trigger')"
                : """
                SELECT 1 WHERE to_regclass(?1) IS NOT NULL OR EXISTS
                (SELECT 1 FROM pg_trigger WHERE tgname = ?1::text AND tgrelid = to_regclass('push_queue'))
                """
            return try session.run(sql, [.text(name)]).rows.isEmpty
        }
    }

    package func finish(
        _ outcomes: [RowOutcome],
        owner: String,
        claiming request: ClaimRequest?
    ) async throws -> QueueUpdate {
        let dialect = dialect
        return try await database.write { session in
            let finished = try OutcomeQueries(session: session, dialect: dialect).finish(outcomes, owner: owner)
            let claimed = try request.map { try ClaimQueries(session: session, dialect: dialect).claim($0) }
            return QueueUpdate(finished: finished, claimed: claimed ?? [])
        }
    }

    package func nextDue() async throws -> WallTime? {
        let dialect = dialect
        return try await database.read { try ClaimQueries(session: $0, dialect: dialect).nextDue() }
    }

    /// Calls `answer` when the database has answered or refused, or a statement before makes progress.
    ///
    /// A long statement delays all others of a SQLite file. It is no hang.
    package func probe(_ answer: @escaping @Sendable () -> Void) async {
        let (database, start) = (database, database.progressCount)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while database.progressCount == start {
                    guard (try? await Task.sleep(for: Self.probePause)) != nil else { return }
                }
                answer()
            }
            _ = try? await nextDue()
            answer()
            group.cancelAll()
        }
    }

    package func extend(_ rows: [Int64], owner: String, until: WallTime) async throws {
        guard !rows.isEmpty else { return }
        let dialect = dialect
        try await database.write {
            try ClaimQueries(session: $0, dialect: dialect).extend(rows, owner: owner, until: until)
        }
    }

    package func release(except rows: [Int64], owner: String) async throws -> Int {
        let dialect = dialect
        return try await database.write {
            try ClaimQueries(session: $0, dialect: dialect).release(except: rows, owner: owner)
        }
    }

    package func takeOver(at moment: WallTime) async throws -> Int {
        let dialect = dialect
        return try await database.write { try ClaimQueries(session: $0, dialect: dialect).takeOver(at: moment) }
    }

    package func fanOut(_ row: Int64, to tokens: [String], owner: String) async throws {
        let dialect = dialect
        try await database.write {
            try ClaimQueries(session: $0, dialect: dialect).fanOut(row, to: tokens, owner: owner)
        }
    }

    package func settle(after last: Int64) async throws -> (finished: [FinishedRow], last: Int64?) {
        let dialect = dialect
        let found = try await database.read {
            try OutcomeQueries(session: $0, dialect: dialect).abandoned(after: last)
        }
        guard !found.rows.isEmpty else { return ([], found.last) }
        let finished = try await database.write {
            try OutcomeQueries(session: $0, dialect: dialect).settle(found.rows)
        }
        return (finished, found.last)
    }

    package func tokens(of user: String, topic: String, limit: Int) async throws -> [String] {
        try await database.read { try DeviceQueries(session: $0).tokens(of: user, topic: topic, limit: limit) }
    }

    package func template(_ name: String) async throws -> [String: String] {
        try await database.read { try DeviceQueries(session: $0).template(name) }
    }

    package func markDead(_ tokens: [DeadToken], held: Bool) async throws -> Int {
        try await database.write { try DeadTokenQueries(session: $0).markDead(tokens, held: held) }
    }

    package func revive(_ selection: DeviceSelection) async throws -> Revival {
        try await database.write { try DeadTokenQueries(session: $0).revive(selection) }
    }

    package func save(_ trip: DeadTokenBreaker.Trip) async throws {
        try await database.write { try DeadTokenQueries(session: $0).save(trip) }
    }

    package func register(_ device: DeviceEntry) async throws {
        try await database.write { try DeviceQueries(session: $0).register(device) }
    }

    package func enqueue(_ push: NewPush) async throws -> Int64 {
        let dialect = dialect
        return try await database.write { try RowQueries(session: $0, dialect: dialect).enqueue(push) }
    }

    package func push(_ id: Int64) async throws -> PushRecord? {
        let dialect = dialect
        return try await database.read { try RowQueries(session: $0, dialect: dialect).push(id) }
    }

    package func progress(at now: WallTime) async throws -> QueueProgress {
        let dialect = dialect
        return try await database.read { try RowQueries(session: $0, dialect: dialect).progress(at: now) }
    }

    package func retry(_ selection: RowSelection) async throws -> Int {
        // A row for many tokens is final again once its parts are.
        try await change(selection, and: "parts IS NULL") { try $0.retry($1) }
    }

    package func purge(_ selection: RowSelection) async throws -> Int {
        // Parts are deleted with their row.
        try await change(selection, and: "parent IS NULL") { try $0.delete($1) }
    }

    package func deleteOld(
        _ statuses: [FinalStatus],
        endedBefore end: WallTime,
        after last: Int64
    ) async throws -> (deleted: Int, last: Int64?) {
        let dialect = dialect
        // Read apart, because a transaction that writes keeps other programs from writing.
        let page = try await database.read {
            try RetentionQueries(session: $0, dialect: dialect).page(statuses, endedBefore: end, after: last)
        }
        guard !page.old.isEmpty else { return (0, page.last) }
        let deleted = try await database.write {
            try RetentionQueries(session: $0, dialect: dialect).delete(page.old, statuses)
        }
        return (deleted, page.last)
    }

    /// Changes the rows of a selection, one page in each transaction.
    private func change(
        _ selection: RowSelection,
        and extra: String,
        _ body: @escaping @Sendable (RowQueries, [Int64]) throws -> Int
    ) async throws -> Int {
        let dialect = dialect
        var last: Int64? = .min
        var total = 0
        while let after = last {
            let page = try await database.write { session in
                let rows = RowQueries(session: session, dialect: dialect)
                let ids = try rows.page(of: selection, and: extra, after: after)
                return (last: ids.last, changed: ids.isEmpty ? 0 : try body(rows, ids))
            }
            last = page.last
            total += page.changed
        }
        return total
    }

    package func changes() -> AsyncStream<Void> {
        database.changes()
    }

    package func close() async {
        await database.close()
    }
}
