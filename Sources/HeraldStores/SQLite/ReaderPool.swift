import GRDB
import Synchronization

/// Connections that can only read, taken in turn.
final class ReaderPool: Sendable {
    private let connections: [DatabaseQueue]
    private let turn = Atomic<UInt>(0)
    private let path: String

    init(_ connections: [DatabaseQueue], path: String) {
        self.connections = connections
        self.path = path
    }

    /// Reads in one transaction: all that `body` sees is of one moment, at which every commit that was reported before
    /// is included.
    /// - Throws: ``StoreError``; `CancellationError` if the task is cancelled.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        do {
            return try await connections[Int(turn % UInt(connections.count))].read(body)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw StoreError(reading: error, path: path)
        }
    }

    /// Closes the connections, after the reads that they have begun; later ones throw.
    func close() {
        // A connection that cannot be closed now is closed when the pool goes.
        for connection in connections { try? connection.close() }
    }
}
