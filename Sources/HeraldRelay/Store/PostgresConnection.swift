import CLibpq

/// One connection of libpq; used by one thread at a time.
final class PostgresConnection: SQLSession {
    private let handle: OpaquePointer
    /// Statement → the name under which it is prepared.
    private var prepared: [String: String] = [:]

    /// Connects.
    /// - Parameter address: An address of libpq; what it says of time-outs wins over what is said here.
    /// - Throws: ``RelayStoreError``.
    init(_ address: String) throws {
        let settings = [
            ("application_name", "herald relay"), ("connect_timeout", "10"), ("tcp_user_timeout", "30000"),
            ("client_encoding", "UTF8"), ("dbname", address),
        ]
        let opened = PostgresConnection.withTexts(settings.map(\.0)) { names in
            PostgresConnection.withTexts(settings.map(\.1)) { values in PQconnectdbParams(names, values, 1) }
        }
        guard let opened else { throw RelayStoreError(.unavailable, "there is no memory for a connection") }
        guard PQstatus(opened) == CONNECTION_OK else {
            let reason = PostgresConnection.line(PQerrorMessage(opened))
            PQfinish(opened)
            throw RelayStoreError(.unavailable, "cannot connect to PostgreSQL: \(reason)")
        }
        handle = opened
        // Moments without a zone are UTC; nothing that another transaction holds makes this one wait for ever.
        try command("SET TIME ZONE 'UTC'")
        try command("SET lock_timeout = '10s'")
        try command("SET statement_timeout = '60s'")
    }

    deinit {
        PQfinish(handle)
    }

    var isWorking: Bool { PQstatus(handle) == CONNECTION_OK }
    var socket: Int32 { PQsocket(handle) }

    /// Runs a statement without parameters and rows.
    func command(_ sql: String) throws {
        let result = PQexec(handle, sql)
        defer { PQclear(result) }
        try check(result)
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        let name: String
        if let known = prepared[sql] {
            name = known
        } else {
            name = "s\(prepared.count)"
            let result = PQprepare(handle, name, PostgresConnection.numbered(sql), 0, nil)
            defer { PQclear(result) }
            try check(result)
            prepared[sql] = name
        }
        return try with(arguments) { values, count in
            PQexecPrepared(handle, name, count, values, nil, nil, 0)
        }
    }

    func runOnce(_ sql: String, _ arguments: [SQLValue]) throws -> SQLResult {
        try with(arguments) { values, count in
            PQexecParams(handle, PostgresConnection.numbered(sql), count, nil, values, nil, nil, 0)
        }
    }

    /// Takes what the server sent by itself.
    /// - Returns: Whether there was a notification; nil if the connection is gone.
    func takeNotifications() -> Bool? {
        guard PQconsumeInput(handle) == 1 else { return nil }
        var found = false
        while let notification = PQnotifies(handle) {
            PQfreemem(notification)
            found = true
        }
        return found
    }

    private func with(
        _ arguments: [SQLValue],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, Int32) -> OpaquePointer?
    ) throws -> SQLResult {
        // Text of a service's answer, say, may hold a zero byte, which ends a text here; nothing of value follows one.
        let texts = arguments.map { value in value.bytes.map { String(decoding: $0, as: UTF8.self) } }
        let result = PostgresConnection.withTexts(texts) { body($0, Int32(arguments.count)) }
        defer { PQclear(result) }
        try check(result)
        var read = SQLResult()
        let columns = PQnfields(result)
        for row in 0..<PQntuples(result) {
            read.rows.append(
                (0..<columns).map { column in
                    guard PQgetisnull(result, row, column) == 0, let value = PQgetvalue(result, row, column) else {
                        return .null
                    }
                    let length = Int(PQgetlength(result, row, column))
                    return .bytes(Array(UnsafeRawBufferPointer(start: value, count: length)))
                }
            )
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
        // The first line: those after it repeat the statement or a row.
        let reason =
            PQresultErrorField(result, 77).map(PostgresConnection.line)
            ?? PostgresConnection.line(PQerrorMessage(handle))
        // Connection, transaction rollback, resources, operator's intervention, lock not available, read only.
        let passing = ["08", "40", "53", "57", "55", "25"]
        let isPassing = !isWorking || state.isEmpty || passing.contains { state.hasPrefix($0) }
        throw RelayStoreError(
            isPassing ? .unavailable : .failed,
            "PostgreSQL: \(reason)\(state.isEmpty ? "" : " (\(state))")"
        )
    }

    /// Spells parameters as libpq does, `$1` for `?1`.
    ///
    /// No statement has a question mark elsewhere.
    private static func numbered(_ sql: String) -> String {
        sql.replacing("?", with: "$")
    }

    private static func line(_ text: UnsafeMutablePointer<CChar>?) -> String {
        let text = text.map { String(cString: $0) } ?? ""
        return text.split { $0.isNewline }.map { $0.trimmingPrefix { $0 == " " || $0 == "\t" } }.joined(separator: "; ")
    }

    /// Lends texts as C strings, for the time of a call.
    private static func withTexts<Result>(
        _ texts: [String?],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let bytes = texts.map { $0.map { Array($0.utf8CString) } ?? [] }
        let offsets = bytes.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1.count) }
        let all = bytes.flatMap { $0 }
        return all.withUnsafeBufferPointer { buffer in
            var pointers: [UnsafePointer<CChar>?] = texts.indices.map { index in
                texts[index] == nil ? nil : buffer.baseAddress.map { $0 + offsets[index] }
            }
            pointers.append(nil)
            return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
        }
    }

    private static func withTexts<Result>(
        _ texts: [String],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        withTexts(texts.map { Optional($0) }, body)
    }
}
