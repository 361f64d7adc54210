import CLibpq
import Foundation
import HeraldModel

/// Limits of time for statements in PostgreSQL.
struct PostgresLimits: Sendable {
    /// For a lock that another transaction holds.
    var lock = Duration.seconds(5)
    /// For a statement, kept by the server.
    var statement = Duration.seconds(60)
    /// For an answer.
    ///
    /// Longer than the server's limit: beyond it the server is frozen, or its host is gone.
    var answer = Duration.seconds(70)
    /// For a transaction to begin, behind others.
    var begin = Duration.seconds(10)
}

/// A connection of libpq, for one thread at a time.
///
/// It keeps no state in its session but for ``listen(_:)``: behind a pooler, the next transaction may have another session,
/// and another client gets this one. So statements are not prepared, and settings end with their transaction.
final class PostgresConnection: SQLSession {
    let dialect = SQLDialect.postgresql
    let tables: TableNames
    private let handle: OpaquePointer
    private let limits: PostgresLimits
    /// Whether the server took writes when it was connected.
    private var wasWriter = false
    /// An answer did not come in time; it may come later, for another statement.
    private var isSilent = false

    /// Connects; the parameters of the URI take precedence over the settings before it.
    /// - Throws: ``RelayStoreError``.
    init(_ address: String, tables: TableNames = TableNames(), limits: PostgresLimits = PostgresLimits()) throws {
        self.tables = tables
        self.limits = limits
        var settings = [
            ("application_name", "herald relay"), ("connect_timeout", "10"),
            // A host that vanished is noticed by a connection that sends, and by one that only listens.
            ("tcp_user_timeout", "30000"), ("keepalives_idle", "30"), ("keepalives_interval", "10"),
            ("keepalives_count", "3"),
        ]
        // Of several hosts, the writer. A single one may be a pooler that keeps what its server said long ago.
        if address.contains(",") { settings.append(("target_session_attrs", "read-write")) }
        settings += [("dbname", address), ("client_encoding", "UTF8")]
        let opened = PostgresConnection.withTexts(settings.map { $0.0 }) { names in
            PostgresConnection.withTexts(settings.map { $0.1 }) { values in PQconnectdbParams(names, values, 1) }
        }
        guard let opened else { throw RelayStoreError(.unavailable, "no memory for a connection to PostgreSQL") }
        guard PQstatus(opened) == CONNECTION_OK else {
            let reason = PostgresConnection.line(PQerrorMessage(opened))
            PQfinish(opened)
            throw RelayStoreError(.unavailable, "cannot connect to PostgreSQL: \(reason)")
        }
        handle = opened
        // The limit for answers also holds while a statement is sent.
        PQsetnonblocking(handle, 1)
        // A trigger of another program may put a row's content into a notice, which libpq writes to standard error.
        PQsetNoticeProcessor(handle, { _, _ in }, nil)
        wasWriter = isWriter
    }

    deinit {
        PQfinish(handle)
    }

    /// Whether the server takes writes, as far as it says so: a pooler says nothing.
    private var isWriter: Bool {
        let parameters: [String] = ["default_transaction_read_only", "in_hot_standby"]
        return parameters.allSatisfy { PQparameterStatus(handle, $0).map { String(cString: $0) } != "on" }
    }

    var isWorking: Bool { !isSilent && PQstatus(handle) == CONNECTION_OK }
    var socket: Int32 { PQsocket(handle) }

    /// Runs a statement without parameters and without result rows.
    func command(_ sql: String) throws {
        let result = try answer(PQsendQuery(handle, sql))
        defer { PQclear(result) }
        try check(result)
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        try runOnce(sql, arguments)
    }

    func runOnce(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        try with(arguments) { values, count in
            PQsendQueryParams(handle, PostgresConnection.numbered(sql), count, nil, values, nil, nil, 0)
        }
    }

    // MARK: - Transactions

    /// Where to look if the relay cannot write.
    static let readOnly = "is it a standby, or is default_transaction_read_only set for the role, database or server?"

    /// Begins a transaction, and sets for it what the relay relies on, whatever server, database, role and other clients of
    /// a pooler have set.
    ///
    /// Whether it may write is theirs: a server that was fenced off is read-only.
    /// - Throws: ``RelayStoreError``, also if the server has become read-only since it was connected.
    func begin(isReadOnly: Bool) throws {
        let limit = limits.statement.wholeMilliseconds
        try command(
            """
            BEGIN ISOLATION LEVEL READ COMMITTED\(isReadOnly ? " READ ONLY" : "");
            SET LOCAL role TO DEFAULT; SET LOCAL search_path TO DEFAULT; SET LOCAL TimeZone = 'UTC';
            SET LOCAL row_security = on; SET LOCAL lock_timeout = \(limits.lock.wholeMilliseconds);
            SET LOCAL statement_timeout = \(limit); SET LOCAL idle_in_transaction_session_timeout = \(limit);
            \(PQserverVersion(handle) >= 170_000 ? "SET LOCAL transaction_timeout = 0;" : "")
            SELECT set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off'
            """
        )
        guard isWriter || !wasWriter else {
            throw RelayStoreError(.unavailable, "PostgreSQL: the server has become read-only", endsConnection: true)
        }
    }

    /// Ends a transaction; it is durable then.
    func commit() throws {
        let result = try answer(PQsendQuery(handle, "COMMIT"))
        defer { PQclear(result) }
        try check(result)
        // A failed transaction is rolled back without an error.
        guard let status = PQcmdStatus(result), String(cString: status) == "COMMIT" else {
            throw RelayStoreError(.unavailable, "PostgreSQL: the transaction was rolled back", endsConnection: true)
        }
    }

    // MARK: - Notifications

    /// Has the server report the notifications of a channel.
    /// - Returns: Whether it does. A pooler gives the session to other clients.
    func listen(_ channel: String) throws -> Bool {
        let session = try runOnce("SELECT pg_backend_pid()", []).rows.first?[0].int
        guard session == Int64(PQbackendPID(handle)) else { return false }
        try command("SET idle_session_timeout = 0")
        try command("LISTEN \(channel)")
        return true
    }

    /// Reads pending notifications.
    /// - Returns: Whether there was one; nil if the connection is lost.
    func takeNotifications() -> Bool? {
        guard PQconsumeInput(handle) == 1 else { return nil }
        var found = false
        while let notification = PQnotifies(handle) {
            PQfreemem(notification)
            found = true
        }
        return found
    }

    /// Waits for the last result of what was sent; nil if the connection is lost.
    /// - Throws: ``RelayStoreError/Code/unavailable`` if it does not come in time.
    private func answer(_ isSent: Int32) throws -> OpaquePointer? {
        guard isSent == 1 else { return nil }
        let end = ContinuousClock.now + limits.answer
        var last: OpaquePointer?
        do {
            while try waitForInput(until: end), let next = PQgetResult(handle) {
                PQclear(last)
                last = next
            }
            return last
        } catch {
            PQclear(last)
            throw error
        }
    }

    /// Sends the rest, and waits until a result can be taken without waiting.
    /// - Returns: Whether the connection works.
    private func waitForInput(until end: ContinuousClock.Instant) throws -> Bool {
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { return false }
            if unsent == 0, PQisBusy(handle) == 0 { return true }
            let left = ContinuousClock.now.duration(to: end).wholeMilliseconds
            guard left > 0 else {
                isSilent = true
                throw RelayStoreError(.unavailable, "PostgreSQL: no answer in time")
            }
            let events = unsent == 0 ? POLLIN : POLLIN | POLLOUT
            var polled = pollfd(fd: socket, events: Int16(events), revents: 0)
            guard poll(&polled, 1, Int32(clamping: left)) > 0 else { continue }
            guard PQconsumeInput(handle) == 1 else { return false }
        }
    }

    private func with(
        _ arguments: [SQLValue],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, Int32) -> Int32
    ) throws -> SQLResult {
        // Text from a service may contain a zero byte, which ends a C string. Nothing of value follows one.
        let texts = arguments.map { value in value.bytes.map { String(decoding: $0, as: UTF8.self) } }
        let result = try answer(PostgresConnection.withTexts(texts) { body($0, Int32(arguments.count)) })
        defer { PQclear(result) }
        try check(result)
        var read = SQLResult()
        let columns = PQnfields(result)
        for row in 0..<PQntuples(result) {
            let values = (0..<columns).map { column -> SQLValue in
                guard PQgetisnull(result, row, column) == 0, let value = PQgetvalue(result, row, column) else {
                    return .null
                }
                let length = Int(PQgetlength(result, row, column))
                return .bytes(Array(UnsafeRawBufferPointer(start: value, count: length)))
            }
            read.rows.append(SQLRow(values: values))
        }
        read.changed = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
        return read
    }

    private func check(_ result: OpaquePointer?) throws {
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK: return
        default: break
        }
        let state = PQresultErrorField(result, 67).map { String(cString: $0) } ?? ""
        // The first line; the others may repeat the statement or a row.
        let reason =
            PQresultErrorField(result, 77).map(PostgresConnection.line)
            ?? PostgresConnection.line(PQerrorMessage(handle))
        // Connection, transaction rollback, resources, operator intervention, object state, invalid transaction state,
        // system.
        let passing = ["08", "40", "53", "57", "55", "25", "58"]
        let isPassing = !isWorking || state.isEmpty || passing.contains { state.hasPrefix($0) }
        // Connection, invalid transaction state (as read-only), shutdown; a statement, cursor or plan of another client of a
        // pooler; what the server does not support, as in recovery; internal errors.
        let ending = ["08", "25", "57P", "26", "34", "0A", "XX"]
        throw RelayStoreError(
            isPassing ? .unavailable : .failed,
            "PostgreSQL: \(reason)\(state.isEmpty ? "" : " (\(state))")"
                + (state == "25006" ? ": \(PostgresConnection.readOnly)" : ""),
            // insufficient_privilege
            isDenied: state == "42501",
            endsConnection: !isWorking || state.isEmpty || ending.contains { state.hasPrefix($0) }
        )
    }

    /// Replaces `?1` by `$1`, the spelling of libpq; no statement has another question mark.
    private static func numbered(_ sql: String) -> String {
        sql.replacing("?", with: "$")
    }

    private static func line(_ text: UnsafeMutablePointer<CChar>?) -> String {
        let text = text.map { String(cString: $0) } ?? ""
        return text.split { $0.isNewline }.map { $0.trimmingPrefix { $0 == " " || $0 == "\t" } }.joined(separator: "; ")
    }

    /// Passes strings as C strings to a call.
    private static func withTexts<Result>(
        _ texts: [String?],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let copies = texts.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        let pointers: [UnsafePointer<CChar>?] = copies.map { $0.map { UnsafePointer($0) } } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}
