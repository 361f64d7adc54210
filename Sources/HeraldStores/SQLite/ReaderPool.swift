import Dispatch
import GRDB
import Synchronization

/// Connections that can only read, taken in turn.
final class ReaderPool: Sendable {
    private struct State {
        var turn = 0
        /// Reads that have begun and not ended.
        var reads = 0
        var isClosed = false
    }

    private let connections: [DatabaseQueue]
    private let path: String
    private let state = Mutex(State())
    private let lastRead = DispatchSemaphore(value: 0)

    init(_ connections: [DatabaseQueue], path: String) {
        self.connections = connections
        self.path = path
    }

    /// Reads in one transaction: all that `body` sees is of one moment, at which every commit that was reported before
    /// is included.
    /// - Throws: ``StoreError``; `CancellationError` if the task is cancelled.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let connection = try begin()
        defer { end() }
        do {
            return try await connection.read(body)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw StoreError(reading: error, path: path)
        }
    }

    private func begin() throws -> DatabaseQueue {
        try state.withLock { state in
            guard !state.isClosed else { throw StoreError.closed }
            state.reads += 1
            state.turn = (state.turn + 1) % connections.count
            return connections[state.turn]
        }
    }

    private func end() {
        let isLast = state.withLock { state in
            state.reads -= 1
            return state.isClosed && state.reads == 0
        }
        if isLast { lastRead.signal() }
    }

    /// Closes the connections, after the reads that have begun (GRDB traps if one is used later); later ones throw.
    ///
    /// Called once, from the writer's thread, which may wait.
    func close() {
        let waits = state.withLock { state in
            state.isClosed = true
            return state.reads > 0
        }
        if waits { lastRead.wait() }
        // A connection that cannot be closed now is closed when the pool goes.
        for connection in connections { try? connection.close() }
    }
}
