import CLibpq
import Dispatch
import HeraldModel
import Synchronization

/// The queue in PostgreSQL, through libpq: one connection for transactions, another for notifications.
///
/// The next transaction replaces a lost connection. A failed transaction is not repeated here.
final class PostgresDatabase: SQLDatabase {
    let dialect = SQLDialect.postgresql
    private let address: String
    private let limits: PostgresLimits
    private let queue = DispatchQueue(label: "herald-relay-postgresql")
    /// Used only on `queue`.
    private let connection = Mutex<PostgresConnection?>(nil)
    private let isClosed = Mutex(false)

    init(address: String, limits: PostgresLimits = PostgresLimits()) {
        self.address = address
        self.limits = limits
    }

    func write<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        try await transaction("BEGIN", body)
    }

    func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLSession) throws -> Value) async throws -> Value {
        try await transaction("BEGIN READ ONLY", body)
    }

    func changes() -> AsyncStream<Void> {
        PostgresListener.changes(address)
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
        _ begin: String,
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
                        return try perform(begin, body)
                    }
                )
            }
        }
    }

    private func perform<Value>(_ begin: String, _ body: (any SQLSession) throws -> Value) throws -> Value {
        try connection.withLock { held in
            let connection = try held ?? PostgresConnection(address, limits: limits)
            held = connection
            do {
                try connection.command(begin)
                let value = try body(connection)
                try connection.command("COMMIT")
                return value
            } catch {
                if connection.isWorking {
                    // If this fails too, the server ends the transaction with the connection.
                    do { try connection.command("ROLLBACK") } catch { held = nil }
                } else {
                    held = nil
                }
                throw error
            }
        }
    }
}
