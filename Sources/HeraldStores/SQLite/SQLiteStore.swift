import Foundation
import GRDB
package import HeraldModel
package import Logging

/// Mailbox, journal, registry and broadcast channels in one SQLite file.
///
/// One thread owns the one connection that writes and copies the write-ahead log (``Writer``); it commits what all event
/// loops have left in the meantime as one transaction (``WriteQueue``, ``WriteBatch``), and tells once per commit. Reads
/// use connections of their own that cannot write (``ReaderPool``). What each slot holds is known in memory
/// (``SlotIndex``), so that what a commit puts is a few rows at the end of one table (``Bundle``).
package final class SQLiteStore: Sendable {
    let file: DatabaseFile
    let configuration: SQLiteStoreConfiguration
    let queue: WriteQueue
    let index: SharedIndex
    let readers: ReaderPool
    let gate: StoreGate
    let reporter = ReporterSlot()
    let logger: Logger
    private let box = StatisticsBox()

    /// Opens the store in a file, or makes one; blocks until what waits in it is indexed (a second or two for a million).
    /// - Parameters:
    ///   - path: The file; its folder must exist.
    ///   - configuration: Limits.
    ///   - clock: Dates the journal's lines about puts.
    ///   - logger: Hears of trouble with the disk.
    ///   - onFatal: Called once, from the store's thread, when nothing more can be stored for good. The process must then
    ///     end with an error: after a failed sync only a restart finds out what is on the disk.
    /// - Throws: ``StoreError``, one line for the operator. The file is not touched if it is somebody else's, newer, or
    ///   damaged.
    package init(
        path: String,
        configuration: SQLiteStoreConfiguration = SQLiteStoreConfiguration(),
        clock: any WallClock,
        logger: Logger,
        onFatal: @escaping @Sendable (StoreError) -> Void
    ) throws {
        file = DatabaseFile(path: path)
        self.configuration = configuration
        self.logger = logger
        gate = StoreGate()
        queue = WriteQueue(
            gate: gate,
            countLimit: configuration.backlogLimit,
            byteLimit: configuration.backlogByteLimit
        )
        let check = StoreCheck(configuration: configuration, logger: logger)
        let opening = DatabaseOpening(file: file, configuration: configuration, check: check)
        let connection = try opening.writer()
        index = SharedIndex(try StoreStart(file: file, logger: logger).run(connection))
        let connections = try (0..<max(1, configuration.readerCount)).map { _ in try opening.reader() }
        readers = ReaderPool(connections, path: path)
        startThread(connection, clock: clock, onFatal: onFatal)
    }

    deinit {
        // The thread lives on its own; without this it would wait for ever for a store that is gone.
        queue.close()
    }

    /// What the store has done since it was opened.
    package var statistics: StoreStatistics { box.current }

    /// Commits all that was ordered, copies the log into the file, and closes it.
    ///
    /// What is ordered later is refused.
    package func close() async {
        await withCheckedContinuation { continuation in
            queue.close { continuation.resume() }
        }
    }

    private func startThread(
        _ connection: DatabaseQueue,
        clock: any WallClock,
        onFatal: @escaping @Sendable (StoreError) -> Void
    ) {
        let surroundings = Writer.Surroundings(
            file: file,
            configuration: configuration,
            queue: queue,
            index: index,
            readers: readers,
            gate: gate,
            reporter: reporter,
            statistics: box,
            clock: clock,
            logger: logger,
            onFatal: onFatal
        )
        let thread = Thread { SQLiteStore.write(connection, surroundings) }
        thread.name = "herald-store"
        thread.start()
    }

    /// What the thread does: it holds the connection from beginning to end, so that nobody else can use it.
    private static func write(_ connection: DatabaseQueue, _ surroundings: Writer.Surroundings) {
        do {
            try connection.writeWithoutTransaction { database in
                try Writer(database, surroundings).run()
            }
        } catch {
            let error = StoreError(opening: error, path: surroundings.file.path)
            surroundings.gate.set(.failed)
            surroundings.logger.critical("the store has failed", metadata: ["error": "\(error)"])
            // Told first, as the writer does: who is refused then finds that it was.
            surroundings.onFatal(error)
            surroundings.refuseAll(error)
        }
        do {
            try connection.close()
        } catch {
            surroundings.logger.warning("could not close the store", metadata: ["error": "\(error)"])
        }
        surroundings.queue.closed()
    }

    /// Has the writer make a change, and waits until it is durable.
    /// - Throws: ``StoreError``; nothing has changed then.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (Database, inout WriteBatch) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            change(body) { continuation.resume(with: $0) }
        }
    }

    /// The same for those who cannot wait: `done` is called once, on the writer's thread or at once.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (Database, inout WriteBatch) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let job = WriteJob(
            run: { database, batch in
                let value = try body(database, &batch)
                return { done(.success(value)) }
            },
            fail: { done(.failure($0)) }
        )
        if !queue.append(.job(job)) { job.fail(.closed) }
    }
}
