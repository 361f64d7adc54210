package import HeraldModel

/// The database that holds the queue; the statements are the same for both, except for ``SQLDialect``.
///
/// Each call is one short transaction and throws only ``RelayStoreError``.
package struct RelayStore: Sendable {
    /// Interval at which a probe looks for progress.
    private static let probePause = Duration.milliseconds(250)

    let database: any SQLDatabase

    init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// Opens a database; PostgreSQL is connected at the first call.
    /// - Throws: ``RelayStoreError``.
    package static func open(_ address: DatabaseAddress, tables: TableNames = TableNames()) throws -> RelayStore {
        switch address {
        case .sqlite(let path): RelayStore(try SQLiteDatabase(path: path, tables: tables))
        case .postgresql(let address): RelayStore(PostgresDatabase(address: address, tables: tables))
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

    /// Creates missing tables, and checks the existing ones.
    /// - Returns: Warnings for an operator, such as a missing part that the relay can do without; one line each.
    @discardableResult
    package func prepare() async throws -> [String] {
        try await TablePreparation(database: database).run()
    }

    /// Writes outcomes, and claims due rows, oldest first.
    ///
    /// All of it is durable when it returns. A row that is already final does not change.
    /// - Returns: The rows that are final now, and the rows that were claimed.
    /// - Throws: `RelayStoreError`; nothing is written then.
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

    /// When the next unclaimed row is due; nil if there is none.
    package func nextDue() async throws -> WallTime? {
        try await database.read { try ClaimQueries(session: $0).nextDue() }
    }

    /// Calls `answer` when the database has answered or refused, or a statement before makes progress.
    ///
    /// A long statement delays all others of a SQLite file, which does not mean that it hangs.
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

    /// Extends the claims of an owner on the given rows.
    ///
    /// It may own others whose claim it never received.
    package func extend(_ rows: [Int64], owner: String, until: WallTime) async throws {
        guard !rows.isEmpty else { return }
        try await database.write {
            try ClaimQueries(session: $0).extend(rows, owner: owner, until: until)
        }
    }

    /// Ends the claims of an owner on all rows but the given ones.
    ///
    /// They are due at once, and were not sent by that owner.
    /// - Returns: The number of rows.
    package func release(except rows: [Int64], owner: String) async throws -> Int {
        try await database.write {
            try ClaimQueries(session: $0).release(except: rows, owner: owner)
        }
    }

    /// Ends all claims of any owner, for a database with only one relay.
    package func takeOver(at moment: WallTime) async throws -> Int {
        try await database.write { try ClaimQueries(session: $0).takeOver(at: moment) }
    }

    /// Splits a row for many tokens into one row for each.
    package func fanOut(_ row: Int64, to tokens: [String], owner: String) async throws {
        try await database.write {
            try ClaimQueries(session: $0).fanOut(row, to: tokens, owner: owner)
        }
    }

    /// Finishes rows for many tokens whose remaining parts were deleted.
    ///
    /// One call checks a limited number of rows.
    /// - Returns: The finished rows, and the row to go on after; nil at the end.
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

    /// Tokens of a user's live devices for a topic, at most `limit`.
    package func tokens(of user: String, topic: String, limit: Int) async throws -> [String] {
        try await database.read { try DeviceQueries(session: $0).tokens(of: user, topic: topic, limit: limit) }
    }

    /// Payload of a template by language.
    package func template(_ name: String) async throws -> [String: String] {
        try await database.read { try DeviceQueries(session: $0).template(name) }
    }

    /// Marks tokens dead that were not registered since; with `held`, only records that they would have been.
    /// - Returns: Number of marked tokens.
    package func markDead(_ tokens: [DeadToken], held: Bool) async throws -> Int {
        try await database.write { try DeadTokenQueries(session: $0).markDead(tokens, held: held) }
    }

    /// Makes dead tokens alive again, and resets the breakers of the selection.
    package func revive(_ selection: TokenSelection) async throws -> Revival {
        try await database.write { try DeadTokenQueries(session: $0).revive(selection) }
    }

    /// Keeps an open breaker for later starts and other relays, until ``revive(_:)`` resets it.
    package func save(_ trip: DeadTokenBreaker.Trip) async throws {
        try await database.write { try DeadTokenQueries(session: $0).save(trip) }
    }

    /// Registers a token, or updates its registration.
    package func register(_ device: RelayDevice) async throws {
        try await database.write { try DeviceQueries(session: $0).register(device) }
    }

    /// Queues a row.
    package func enqueue(_ push: NewPush) async throws -> Int64 {
        try await database.write { try RowQueries(session: $0).enqueue(push) }
    }

    /// A row with the outcomes of its tokens; nil if it does not exist.
    package func push(_ id: Int64) async throws -> PushRecord? {
        try await database.read { try RowQueries(session: $0).push(id) }
    }

    package func progress(at now: WallTime) async throws -> QueueProgress {
        try await database.read { try RowQueries(session: $0).progress(at: now) }
    }

    /// Queues final rows again, as new ones.
    package func retry(_ selection: RowSelection) async throws -> Int {
        var last: Int64? = .min
        var total = 0
        while last != nil {
            total += try await page(of: selection, for: .retry, after: &last) { try $0.retry($1) } ?? 0
        }
        return total
    }

    /// Deletes final rows; a dry run only looks for them.
    package func purge(_ selection: RowSelection, isDryRun: Bool) async throws -> PurgedRows {
        var last: Int64? = .min
        var purged = PurgedRows()
        while last != nil {
            let page = try await page(of: selection, for: .purge, after: &last, locks: !isDryRun) { rows, ids in
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
    package func leftOut(_ selection: TokenSelection) async throws -> LeftOutTokens {
        try await database.read { try DeadTokenQueries(session: $0).leftOut(selection) }
    }

    /// Deletes final rows of these statuses that ended before a time.
    ///
    /// One call checks a limited number of rows. A row that another program finished without a `time_sent` counts from its `send_after`, else its `time_queued`.
    /// - Returns: The number of deleted rows, and the row to go on after; nil at the end.
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
        locks: Bool = true,
        _ body: @escaping @Sendable (RowQueries, [Int64]) throws -> Value
    ) async throws -> Value? {
        guard let after = last else { return nil }
        let page = try await database.write { session in
            let rows = RowQueries(session: session)
            let ids = try rows.page(of: selection, for: change, after: after, locks: locks)
            return (last: ids.last, value: ids.isEmpty ? nil : try body(rows, ids))
        }
        last = page.last
        return page.value
    }

    /// Reports that other programs may have written.
    /// - Parameter note: Called once if the database cannot report it, with the reason. The stream then has an element each second.
    /// - Returns: A stream with an element for each report, and one at the start.
    package func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> {
        database.changes(note: note)
    }

    package func close() async {
        await database.close()
    }
}
