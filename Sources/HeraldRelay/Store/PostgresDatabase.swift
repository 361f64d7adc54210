import CLibpq
import Dispatch
import HeraldModel
import Synchronization

/// The queue in a PostgreSQL database, through libpq: one connection for what is asked, another that listens.
///
/// A connection that is lost is made again with the next transaction; one that was under way is not repeated here.
final class PostgresDatabase: SQLDatabase {
    let dialect = SQLDialect.postgresql
    private let address: String
    private let queue = DispatchQueue(label: "herald-relay-postgresql")
    /// Used on `queue` only.
    private let connection = Mutex<PostgresConnection?>(nil)
    private let isClosed = Mutex(false)

    init(address: String) {
        self.address = address
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
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                continuation.resume(with: Result { try perform(begin, body) })
            }
        }
    }

    private func perform<Value>(_ begin: String, _ body: (any SQLSession) throws -> Value) throws -> Value {
        try connection.withLock { held in
            let connection = try held ?? PostgresConnection(address)
            held = connection
            do {
                try connection.command(begin)
                let value = try body(connection)
                try connection.command("COMMIT")
                return value
            } catch {
                if connection.isWorking {
                    // If it cannot even do this, the server ends the transaction with the connection.
                    do { try connection.command("ROLLBACK") } catch { held = nil }
                } else {
                    held = nil
                }
                throw error
            }
        }
    }
}
