import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import Logging

/// The one thread that writes: takes what was ordered, commits it together, and tells.
///
/// 1. Gathers orders into a batch and commits it (group commit: what comes while one commit is on its way to the disk is
///    in the next).
/// 2. Copies the write-ahead log into the file, between commits.
/// 3. When the disk fails: rolls back, tells those who waited, keeps the journal's lines and removals, and tries again
///    from time to time. When a sync fails: refuses all that comes, and has the process ended.
///
/// It blocks, on the disk and on ``WriteQueue``; that is what the thread is for. Nothing in it leaves the thread.
final class Writer {
    /// What the writer shares with the rest of the store.
    struct Surroundings: Sendable {
        let file: DatabaseFile
        let configuration: SQLiteStoreConfiguration
        let queue: WriteQueue
        let index: SharedIndex
        let readers: ReaderPool
        let gate: StoreGate
        let reporter: ReporterSlot
        let statistics: StatisticsBox
        let clock: any WallClock
        let logger: Logger
        let onFatal: @Sendable (StoreError) -> Void
    }

    /// What one commit took from the orders, and whom it is to tell.
    struct Stage {
        /// How many orders.
        var count = 0
        var urgent = 0
        var changes = 0
        var bytes = 0
        var receipts: [Receipt] = []
        var afterwards: [@Sendable () -> Void] = []
        /// The places of jobs that failed by themselves and were told so.
        var answered: Set<Int> = []
    }

    let surroundings: Surroundings
    let database: Database
    let log: LogCounter
    var settings: StoreSettings
    var schedule: WriterSchedule
    /// Orders that were taken from the queue and are not done.
    var orders: [WriteOrder] = []
    /// How many of them somebody waits for.
    var urgent = 0
    /// Why nothing can be written, as long as that is so.
    var trouble: StoreError?
    var spaceCheckedAt: Duration?
    private let start = ContinuousClock.now
    private let transaction: TransactionStatements
    private var bundles: BundleTable
    private var journal: JournalTable
    private var batch: WriteBatch

    init(_ database: Database, _ surroundings: Surroundings) throws {
        self.surroundings = surroundings
        self.database = database
        log = LogCounter(database)
        settings = try StoreSettings(database, newestSequence: surroundings.index.newestSequence)
        schedule = WriterSchedule(surroundings.configuration)
        transaction = try TransactionStatements(database)
        bundles = try BundleTable(database)
        journal = try JournalTable(database)
        batch = WriteBatch(index: surroundings.index, nextSequence: settings.firstSequence)
    }

    /// The time since the writer's start.
    var now: Duration { start.duration(to: .now) }

    var nextSequence: UInt64 { batch.nextSequence }

    /// Works until the store is closed.
    func run() {
        while true {
            let waiting = surroundings.queue.facts
            let facts = WriterSchedule.Facts(
                now: now,
                urgent: waiting.urgent + urgent,
                hasWork: !waiting.isEmpty || !orders.isEmpty,
                isClosing: waiting.isClosing
            )
            switch schedule.next(facts) {
            case .commit: commit()
            case .checkpoint(let mode): checkpoint(mode)
            case .probe: probe()
            case .refuse: refuse()
            case .sleep(let until, let urgent, let any):
                surroundings.queue.sleep(
                    for: until.map { $0 - now },
                    alarm: WriteQueue.Alarm(urgent: urgent, isForAny: any)
                )
            case .finish:
                finish()
                return
            }
        }
    }

    /// Takes over what was left in the queue.
    func take() {
        urgent += surroundings.queue.take(into: &orders)
    }

    private func commit() {
        checkSpace()
        take()
        batch.begin(at: surroundings.clock.now())
        defer { batch.clear() }
        var stage = Stage()
        do {
            let journalEnd = try transact {
                try stageOrders(&stage)
                try batch.write(to: &bundles)
                try settings.cover(batch.nextSequence, database)
                return try journal.append(batch.journal)
            }
            journal.moved(to: journalEnd)
        } catch {
            failed(stage, error)
            return
        }
        settings.committed()
        batch.updateIndex(bundles.places)
        schedule.committed(urgent: stage.urgent, pagesInLog: log.pages, now: now)
        surroundings.statistics.committed(changes: stage.changes)
        orders.removeFirst(stage.count)
        urgent -= stage.urgent
        surroundings.queue.finished(count: stage.count, bytes: stage.bytes)
        tell(stage)
    }

    private func tell(_ stage: Stage) {
        let puts = batch.puts
        if !puts.isEmpty { surroundings.reporter.current?.stored(puts) }
        for receipt in stage.receipts { receipt.settle(.accepted) }
        for afterwards in stage.afterwards { afterwards() }
    }

    /// Moves orders into the batch, up to the limits of one commit.
    private func stageOrders(_ stage: inout Stage) throws {
        let limits = surroundings.configuration
        while stage.count < orders.count, stage.changes < limits.changesPerCommit,
            batch.lineCount < limits.linesPerCommit
        {
            let place = stage.count
            stage.count += 1
            stage.bytes += orders[place].payloadBytes
            if orders[place].isUrgent { stage.urgent += 1 }
            switch orders[place] {
            case .put(let letter, let reason, let tag, let isNew):
                batch.put(letter, reason: reason, tag: tag, isNew: isNew)
                stage.changes += 1
            case .remove(let slot, let sequence, let event):
                batch.remove(slot, sequence: sequence, event: event)
                stage.changes += 1
            case .record(let event, let receipt):
                batch.record(event)
                if let receipt { stage.receipts.append(receipt) }
            case .job(let job):
                try perform(job, at: place, &stage)
                stage.changes += 1
            }
        }
    }

    /// A job that fails by itself does not take the rest of the commit with it.
    private func perform(_ job: WriteJob, at place: Int, _ stage: inout Stage) throws {
        let afterwards: @Sendable () -> Void
        try transaction.savepoint.run()
        do {
            afterwards = try job.run(database, &batch)
        } catch {
            let failure = StoreError(writing: error, path: surroundings.file.path)
            // A full disk or a failing one may have rolled everything back: then the whole commit has failed.
            guard sqlite3_get_autocommit(database.sqliteConnection) == 0, !failure.isFinal else { throw error }
            try transaction.rollbackToSavepoint.run()
            try transaction.release.run()
            stage.answered.insert(place)
            job.fail(failure)
            return
        }
        try transaction.release.run()
        stage.afterwards.append(afterwards)
    }

    /// Makes changes in one transaction, durable when this returns.
    /// - Throws: `DatabaseError`, and what `body` throws; nothing has changed then.
    func transact<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            try transaction.begin.run()
            let result = try body()
            delayCommit()
            try transaction.commit.run()
            return result
        } catch {
            if sqlite3_get_autocommit(database.sqliteConnection) == 0 { try? transaction.rollback.run() }
            throw error
        }
    }

    /// For benchmarks: makes the disk slower than it is.
    private func delayCommit() {
        let delay = surroundings.configuration.commitDelay
        if delay > .zero { usleep(UInt32(clamping: delay.wholeNanoseconds / 1000)) }
    }
}
