import CLibpq
import Dispatch
import Synchronization

/// The queue in PostgreSQL, through libpq: one connection for transactions, another for notifications.
///
/// The next transaction replaces a lost connection. A failed transaction is not repeated here.
final class PostgresDatabase: SQLDatabase {
    let dialect = SQLDialect.postgresql
    let tables: TableNames
    private let address: String
    private let limits: PostgresLimits
    private let queue = DispatchQueue(label: "herald-relay-postgresql")
    /// Used only on `queue`.
    private let connection = Mutex<PostgresConnection?>(nil)
    /// Number of connections that were given up.
    private let losses = ConnectionLosses()

    init(address: String, tables: TableNames = TableNames(), limits: PostgresLimits = PostgresLimits()) {
        self.address = address
        self.tables = tables
        self.limits = limits
    }

    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        try await transaction(isReadOnly: false, body)
    }

    func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        try await transaction(isReadOnly: true, body)
    }

    func warnings() async throws -> [String] {
        let queue = tables.queue
        let row = try await write { session in
            let sql = "SELECT current_setting('transaction_read_only'), row_security_active(?1)::integer"
            return try session.run(sql, [.text(queue)]).rows.first
        }
        var warnings: [String] = []
        if try row?[0].text == "on" { warnings.append("the relay cannot write: \(PostgresConnection.readOnly)") }
        if try row?[1].int == 1 {
            warnings.append(
                "row-level security is on for \(queue): the relay sees only the rows that a policy gives to its role"
            )
        }
        return warnings
    }

    func changes(note: @escaping @Sendable (String) -> Void) -> AsyncStream<Void> {
        PostgresListener(address: address, channel: tables.queue, losses: losses, note: note).changes()
    }

    func close() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                connection.withLock { $0 = nil }
                continuation.resume()
            }
        }
    }

    private func transaction<Value: Sendable>(
        isReadOnly: Bool,
        _ body: @escaping @Sendable (any SQLSession) throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now + limits.begin
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                continuation.resume(
                    with: Result {
                        // Each transaction before it may have waited for a lock: a crowd does not wait for one after another.
                        guard ContinuousClock.now < end else {
                            throw RelayStoreError(.unavailable, "PostgreSQL: other statements take too long")
                        }
                        return try perform(isReadOnly: isReadOnly, body)
                    }
                )
            }
        }
    }

    private func perform<Value>(isReadOnly: Bool, _ body: (any SQLSession) throws -> Value) throws -> Value {
        try connection.withLock { held in
            let connection = try begin(&held, isReadOnly: isReadOnly)
            do {
                let value = try body(connection)
                try connection.commit()
                return value
            } catch {
                let isLost = !connection.isWorking || (error as? RelayStoreError)?.endsConnection == true
                if isLost {
                    drop(&held)
                } else {
                    // If this fails too, the server ends the transaction with the connection.
                    do { try connection.command("ROLLBACK") } catch { drop(&held) }
                }
                throw error
            }
        }
    }

    /// Begins a transaction.
    ///
    /// A connection that the server closed while it was idle is replaced.
    private func begin(_ held: inout PostgresConnection?, isReadOnly: Bool) throws -> PostgresConnection {
        if let connection = held {
            do {
                try connection.begin(isReadOnly: isReadOnly)
                return connection
            } catch {
                drop(&held)
                guard (error as? RelayStoreError)?.endsConnection == true else { throw error }
            }
        }
        let connection = try PostgresConnection(address, tables: tables, limits: limits)
        try connection.begin(isReadOnly: isReadOnly)
        held = connection
        return connection
    }

    /// The next transaction connects anew, and so does the listener, to where the address leads then.
    private func drop(_ held: inout PostgresConnection?) {
        held = nil
        losses.add()
    }
}

/// Number of connections that were given up.
final class ConnectionLosses: Sendable {
    private let number = Atomic(0)

    var count: Int { number.load(ordering: .relaxed) }

    func add() { number.add(1, ordering: .relaxed) }
}
