package import HeraldModel

/// A ``RelayStore`` on SQL; the statements are the same for both databases, except for ``SQLDialect``.
package struct SQLRelayStore: RelayStore {
    /// Interval at which a probe looks for progress.
    private static let probePause = Duration.milliseconds(250)

    let database: any SQLDatabase

    init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// Opens a database; PostgreSQL is connected at the first call.
    /// - Throws: ``RelayStoreError``.
    package static func open(_ address: DatabaseAddress, tables: TableNames = TableNames()) throws -> SQLRelayStore {
        switch address {
        case .sqlite(let path): SQLRelayStore(try SQLiteDatabase(path: path, tables: tables))
        case .postgresql(let address): SQLRelayStore(PostgresDatabase(address: address, tables: tables))
        }
    }

    /// The statements that create the tables, as a script.
    package static func schema(_ address: DatabaseAddress, tables: TableNames = TableNames()) -> String {
        switch address {
        case .sqlite: RelaySchema.script(.sqlite, tables)
        case .postgresql: RelaySchema.script(.postgresql, tables)
        }
    }

    /// Whether the database already holds a queue.
    package func hasQueue() async throws -> Bool {
        try await !TablePreparation(database: database).missingParts().contains(database.tables.queue)
    }

    @discardableResult
    package func prepare() async throws -> [String] {
        try await TablePreparation(database: database).run()
    }

    package func finish(
        _ outcomes: [RowOutcome],
        owner: String,
        claiming request: ClaimRequest?
    ) async throws -> QueueUpdate {
        try await database.write { session in
            let finished = try OutcomeQueries(session: session).finish(outcomes, owner: owner)
            let claimed = try request.map { try ClaimQueries(session: session).claim($0) }
            return QueueUpdate(finished: finished, claimed: claimed ?? [])
        }
    }

    package func nextDue() async throws -> WallTime? {
        try await database.read { try ClaimQueries(session: $0).nextDue() }
    }

    /// Calls `answer` when the database has answered or refused, or a statement before makes progress.
    ///
    /// A long statement delays all others of a SQLite file. It is not a hang.
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
        try await database.write {
            try ClaimQueries(session: $0).extend(rows, owner: owner, until: until)
        }
    }

    package func release(except rows: [Int64], owner: String) async throws -> Int {
        try await database.write {
            try ClaimQueries(session: $0).release(except: rows, owner: owner)
        }
    }

    package func takeOver(at moment: WallTime) async throws -> Int {
        try await database.write { try ClaimQueries(session: $0).takeOver(at: moment) }
    }

    package func fanOut(_ row: Int64, to tokens: [String], owner: String) async throws {
        try await database.write {
            try ClaimQueries(session: $0).fanOut(row, to: tokens, owner: owner)
        }
    }

    package func settle(after last: Int64) async throws -> (finished: [FinishedRow], last: Int64?) {
        let found = try await database.read {
            try OutcomeQueries(session: $0).abandoned(after: last)
        }
        guard !found.rows.isEmpty else { return ([], found.last) }
        let finished = try await database.write {
            try OutcomeQueries(session: $0).settle(found.rows)
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
        try await database.write { try RowQueries(session: $0).enqueue(push) }
    }

    package func push(_ id: Int64) async throws -> PushRecord? {
        try await database.read { try RowQueries(session: $0).push(id) }
    }

    package func progress(at now: WallTime) async throws -> QueueProgress {
        try await database.read { try RowQueries(session: $0).progress(at: now) }
    }

    package func retry(_ selection: RowSelection) async throws -> Int {
        var last: Int64? = .min
        var total = 0
        while last != nil {
            total += try await page(of: selection, for: .retry, after: &last) { try $0.retry($1) } ?? 0
        }
        return total
    }

    package func purge(_ selection: RowSelection, isDryRun: Bool) async throws -> PurgedRows {
        var last: Int64? = .min
        var purged = PurgedRows()
        while last != nil {
            let page = try await page(of: selection, for: .purge, after: &last) { rows, ids in
                PurgedRows(queued: try rows.span(of: ids), count: isDryRun ? ids.count : try rows.delete(ids))
            }
            if let page { purged.add(page) }
        }
        return purged
    }

    /// The rows that a selection leaves out, for a user who expects them in it.
    package func leftOut(_ selection: RowSelection, by change: RowChange) async throws -> LeftOutRows {
        try await database.read { try RowQueries(session: $0).leftOut(selection, by: change) }
    }

    /// The tokens that a selection leaves out, for a user who expects them in it.
    package func leftOut(_ selection: DeviceSelection) async throws -> LeftOutTokens {
        try await database.read { try DeadTokenQueries(session: $0).leftOut(selection) }
    }

    package func deleteOld(
        _ statuses: [FinalStatus],
        endedBefore end: WallTime,
        after last: Int64
    ) async throws -> (deleted: Int, last: Int64?) {
        // Read apart, because a transaction that writes keeps other programs from writing.
        let page = try await database.read {
            try RetentionQueries(session: $0).page(statuses, endedBefore: end, after: last)
        }
        guard !page.old.isEmpty else { return (0, page.last) }
        let deleted = try await database.write {
            try RetentionQueries(session: $0).delete(page.old, statuses)
        }
        return (deleted, page.last)
    }

    /// Does something with the next rows of a selection, in a transaction of their own.
    ///
    /// `last` becomes the row to go on after; nil at the end.
    private func page<Value: Sendable>(
        of selection: RowSelection,
        for change: RowChange,
        after last: inout Int64?,
        _ body: @escaping @Sendable (RowQueries, [Int64]) throws -> Value
    ) async throws -> Value? {
        guard let after = last else { return nil }
        let page = try await database.write { session in
            let rows = RowQueries(session: session)
            let ids = try rows.page(of: selection, for: change, after: after)
            return (last: ids.last, value: ids.isEmpty ? nil : try body(rows, ids))
        }
        last = page.last
        return page.value
    }

    package func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> {
        database.changes(note: note)
    }

    package func close() async {
        await database.close()
    }
}
