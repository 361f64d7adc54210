import Dispatch
import Foundation
import GRDB
package import HeraldMailbox
package import HeraldModel
package import Logging

/// Mailbox, journal, registry and broadcast channels in one SQLite file.
///
/// The store is log-structured: a commit appends its notifications as segments (``Segment``) to one table, and an
/// in-memory index (``SlotIndex``) has the position of each. One thread owns the one connection that writes and
/// checkpoints (``Writer``). It commits the requests of all event loops together (``WriteQueue``, ``WriteBatch``) and
/// reports once per commit. Reads use connections that cannot write (``ReaderPool``).
package final class SQLiteStore: Sendable {
    let file: DatabaseFile
    let configuration: SQLiteStoreConfiguration
    let queue: WriteQueue
    let index: SharedIndex
    let readers: ReaderPool
    let gate: StoreGate
    let reports = (mailbox: WeakReporter(), channels: LocalChannelReports())
    /// The journal's new lines.
    package let feed = JournalFeed()
    /// The requests in each commit of the journal.
    package let tallies = JournalTallies()
    /// The names of the journal's senders.
    package let senders = SenderNames()
    let logger: Logger
    let damage: DamagedRows
    private let presence: FilePresence
    private let counters = StatisticsCounters()

    /// A step of the opening that may take long.
    package enum OpeningStep: String, Sendable {
        case checking = "checking the store, which was not closed cleanly"
        case upgrading = "upgrading the store"
        case reading = "reading the store"
    }

    /// Opens or creates a store; blocks until the index is built (a second or two for a million notifications).
    ///
    /// The folder of `path` must exist. `clock` gives the time of journal events about puts. The logger gets problems
    /// with the disk.
    ///
    /// `onFatal` is called once, on the store's thread, when the store has failed permanently. The process must then
    /// end with an error: after a failed sync, only a restart reads the disk's real content.
    /// - Throws: ``StoreError``, one line for the operator. A foreign, newer or damaged file stays unchanged.
    package init(
        path: String,
        configuration: SQLiteStoreConfiguration = SQLiteStoreConfiguration(),
        clock: any WallClock,
        logger: Logger,
        onStep: @escaping @Sendable (OpeningStep) -> Void = { _ in },
        onFatal: @escaping @Sendable (StoreError) -> Void
    ) throws {
        file = DatabaseFile(path: path)
        self.configuration = configuration
        self.logger = logger
        damage = DamagedRows(logger: logger)
        gate = StoreGate()
        queue = WriteQueue(
            gate: gate,
            countLimit: configuration.backlogLimit,
            byteLimit: configuration.backlogByteLimit
        )
        let opener = DatabaseOpener(file: file, configuration: configuration, logger: logger, onStep: onStep)
        let connection = try opener.writer()
        onStep(.reading)
        index = SharedIndex(try IndexBuilder(file: file, logger: logger).run(connection))
        do {
            try connection.read { [senders, damage] in try SenderTable.load($0, into: senders, damage: damage) }
        } catch {
            throw StoreError(opening: error, path: path)
        }
        let connections = try (0..<max(1, configuration.readerCount)).map { _ in try opener.reader() }
        readers = ReaderPool(connections, path: path)
        presence = FilePresence(of: [path, path + "-wal", path + "-shm"])
        startThread(connection, clock: clock, onFatal: onFatal)
    }

    deinit {
        // Ends the writer's thread, which does not hold the store.
        queue.close()
    }

    /// Counts of the store's work since it was opened.
    package var statistics: StoreStatistics { counters.current }

    /// Writes that wait for the disk.
    package var pendingWrites: Int { queue.pendingRequests }

    /// Bytes of the database and its write-ahead log.
    package var sizeOnDisk: Int { file.size }

    /// Free bytes on its disk for this user; nil if the system does not say.
    package var freeSpace: Int? { file.freeSpace() }

    /// Damaged rows that were left out since the start; a row counts each time it is read.
    package var damagedRows: Int { damage.total }

    /// The error for the operator while the files are not at their place; nil otherwise.
    package var displacement: StoreError? { gate.has(.displaced) ? .displaced(path: file.path) : nil }

    /// Refuses writes from the moment that the files are deleted, moved or replaced, until they are back.
    ///
    /// SQLite does not notice: its descriptors stay valid, and its commits succeed.
    package func checkFiles() {
        let isDisplaced = !presence.isUnchanged
        guard isDisplaced != gate.has(.displaced) else { return }
        if isDisplaced {
            gate.set(.displaced)
            logger.critical(
                "the store is gone; refusing notifications",
                metadata: ["error": "\(StoreError.displaced(path: file.path))"]
            )
        } else {
            gate.clear(.displaced)
            logger.notice("the store is at its place again")
        }
    }

    /// Commits all requests, copies the log into the file, and closes it.
    ///
    /// Later requests are refused.
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
        let dependencies = Writer.Dependencies(
            file: file,
            configuration: configuration,
            queue: queue,
            index: index,
            readers: readers,
            gate: gate,
            reporter: reports.mailbox,
            feed: feed,
            tallies: tallies,
            senders: senders,
            statistics: counters,
            clock: clock,
            logger: logger,
            onFatal: onFatal
        )
        let thread = Thread { SQLiteStore.write(connection, dependencies) }
        thread.name = "herald-store"
        thread.start()
    }

    /// Runs the writer on its thread.
    ///
    /// It holds the connection all the time, so that nothing else can use it.
    private static func write(_ connection: DatabaseQueue, _ store: Writer.Dependencies) {
        do {
            try connection.writeWithoutTransaction { database in
                try Writer(database, store).run()
            }
        } catch {
            let error = StoreError(opening: error, path: store.file.path)
            store.gate.set(.failed)
            store.logger.critical("the store has failed", metadata: ["error": "\(error)"])
            // Before the requests are refused, as the writer does it.
            store.onFatal(error)
            store.queue.close()
            var backlog = WriteBacklog(queue: store.queue, reporter: store.reporter)
            backlog.take()
            backlog.refuse(first: backlog.requests.count, keepsEvents: false, error)
            store.readers.close()
        }
        do {
            try connection.close()
        } catch {
            store.logger.warning("could not close the store", metadata: ["error": "\(error)"])
        }
        store.queue.closed()
    }

    /// Calls `done` when the writer has come to it: never if the writer hangs.
    package func askWriter(_ done: @escaping @Sendable () -> Void) {
        change({ _, _ in }, { _ in done() })
    }

    /// Makes a change on the writer's connection, and waits until it is durable.
    /// - Throws: ``StoreError``; nothing has changed then.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (Database, inout WriteBatch) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            change(body) { continuation.resume(with: $0) }
        }
    }

    /// Makes a change without waiting.
    ///
    /// `done` is called once, on the writer's thread or at once.
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
        // The caller may hold the lock that the report needs, so another thread reports.
        if !queue.append(.job(job)) { DispatchQueue.global().async { job.fail(.closed) } }
    }
}
