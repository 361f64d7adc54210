import Foundation
import GRDB
import GRDBSQLite
import HeraldMailbox
import HeraldModel
import Logging

/// The one thread that writes: takes requests, commits them together, and reports.
///
/// 1. Collects requests into a batch and commits it. Requests that come during a commit are in the next one (group commit).
/// 2. Copies the write-ahead log into the file, between commits (checkpoint).
/// 3. When the disk fails: rolls back, reports the failure, keeps journal events and removals, and tries again
///    periodically. When a sync fails: refuses everything and has the process ended.
///
/// The thread blocks on the disk and on ``WriteQueue``. Nothing in this type leaves the thread.
final class Writer {
    /// The parts of the store that the writer uses.
    struct Dependencies: Sendable {
        let file: DatabaseFile
        let configuration: SQLiteStoreConfiguration
        let queue: WriteQueue
        let index: SharedIndex
        let readers: ReaderPool
        let gate: StoreGate
        let reporter: WeakReporter
        let feed: JournalFeed
        let tallies: JournalTallies
        let senders: SenderNames
        let statistics: StatisticsCounters
        let clock: any WallClock
        let logger: Logger
        let onFatal: @Sendable (StoreError) -> Void
    }

    /// The requests in one commit, and the callers to notify.
    private struct Commit {
        /// The number of requests, and of those with a waiting caller.
        var count = 0
        var urgent = 0
        var changes = 0
        var bytes = 0
        var completions: [Completion] = []
        var afterwards: [@Sendable () -> Void] = []
        /// Indexes of jobs that failed by themselves and have been answered.
        var answered: Set<Int> = []
    }

    private struct Tables {
        var segments: SegmentTable
        var journal: JournalTable
        var tallies: TallyTable
        var senders: SenderTable

        init(_ database: Database, _ store: Dependencies) throws {
            segments = try SegmentTable(database)
            var tallies = try TallyTable(database, store.configuration)
            journal = try JournalTable(database) { tallies.recount($0, at: $1) }
            self.tallies = tallies
            senders = try SenderTable(store.senders, database)
        }
    }

    let store: Dependencies
    private let database: Database
    private let log: WriteAheadLogSize
    private var settings: StoreSettings
    var schedule: WriterSchedule
    private var backlog: WriteBacklog
    /// The error of the last write; nil while writes succeed.
    private var failure: StoreError?
    var spaceCheckedAt: Duration?
    private let start = ContinuousClock.now
    private let transaction: TransactionStatements
    private var tables: Tables
    private var batch: WriteBatch
    private let metrics = StoreMetrics()

    init(_ database: Database, _ store: Dependencies) throws {
        self.store = store
        self.database = database
        log = WriteAheadLogSize(database)
        settings = try StoreSettings(database, newestSequence: store.index.newestSequence)
        schedule = WriterSchedule(store.configuration)
        backlog = WriteBacklog(queue: store.queue, reporter: store.reporter)
        transaction = try TransactionStatements(database)
        tables = try Tables(database, store)
        batch = WriteBatch(index: store.index, nextSequence: settings.firstSequence)
    }

    /// Time since the writer's start.
    var now: Duration { start.duration(to: .now) }

    /// Runs until the store is closed.
    func run() {
        while true {
            let waiting = store.queue.facts
            let facts = WriterSchedule.Facts(
                now: now,
                urgent: waiting.urgent + backlog.urgent,
                hasWork: !waiting.isEmpty || !backlog.requests.isEmpty,
                isClosing: waiting.isClosing
            )
            switch schedule.next(facts) {
            case .commit: commit()
            case .checkpoint(let mode): checkpoint(mode)
            case .probe: probe()
            case .refuse: refuse()
            case .sleep(let until, let urgent, let any):
                store.queue.sleep(
                    for: until.map { $0 - now },
                    wakeUp: WriteQueue.WakeUp(urgent: urgent, isForAny: any)
                )
            case .finish:
                finish()
                return
            }
        }
    }

    // MARK: - Commits

    private func commit() {
        guard !store.gate.has(.displaced) else {
            // A commit would succeed, in files that no start finds.
            failure = .displaced(path: store.file.path)
            schedule.became(.stalled, now: now)
            return refuse()
        }
        checkSpace()
        backlog.take()
        batch.begin(at: store.clock.now())
        defer { batch.clear() }
        var commit = Commit()
        let begin = now
        do {
            let (journalEnd, senderCount) = try transact {
                try fillBatch(&commit)
                try batch.write(to: &tables.segments)
                try settings.cover(batch.nextSequence, database)
                let journalEnd = try tables.journal.append(batch.journal)
                try writeTallies(upTo: journalEnd, isWanted: batch.wantsTallies)
                return (journalEnd, try tables.senders.append(upTo: batch.newestSender, database))
            }
            tables.journal.moved(to: journalEnd)
            tables.tallies.committed(batch.hourly)
            tables.senders.wrote(senderCount)
        } catch {
            failed(commit, error)
            return
        }
        let end = now
        metrics.committed(nanoseconds: (end - begin).wholeNanoseconds, batch.tally)
        settings.committed()
        batch.updateIndex(tables.segments.positions)
        schedule.committed(urgent: commit.urgent, pagesInLog: log.pages, now: end)
        store.statistics.committed(changes: commit.changes)
        backlog.finish(count: commit.count, urgent: commit.urgent, bytes: commit.bytes)
        report(commit)
    }

    private func writeTallies(upTo end: Int64, isWanted: Bool) throws {
        try tables.tallies.write(batch.hourly, upTo: end, at: batch.now, now: now, isWanted: isWanted, database)
    }

    private func report(_ commit: Commit) {
        let puts = batch.puts
        if !puts.isEmpty { store.reporter.current?.stored(puts) }
        store.tallies.report(batch.tally, at: batch.now)
        if store.feed.isFollowed { store.feed.publish(batch.events) }
        for completion in commit.completions { completion.settle(.accepted) }
        for afterwards in commit.afterwards { afterwards() }
    }

    /// Moves requests into the batch, up to the limits of one commit.
    private func fillBatch(_ commit: inout Commit) throws {
        let limits = store.configuration
        while commit.count < backlog.requests.count, commit.changes < limits.changesPerCommit,
            batch.eventCount < limits.eventsPerCommit
        {
            let index = commit.count
            let request = backlog.requests[index]
            commit.count += 1
            commit.bytes += request.payloadBytes
            if request.isUrgent { commit.urgent += 1 }
            switch request {
            case .put(let envelope, let reason, let tag, let isNew):
                batch.put(envelope, reason: reason, tag: tag, isNew: isNew)
                commit.changes += 1
            case .remove(let slot, let sequence, let event):
                batch.remove(slot, sequence: sequence, event: event)
                commit.changes += 1
            case .record(let event, let completion):
                batch.record(event)
                if let completion { commit.completions.append(completion) }
            case .job(let job):
                try perform(job, at: index, &commit)
                commit.changes += 1
            }
        }
    }

    /// Runs a job under a savepoint, so that a job that fails by itself does not fail the commit.
    private func perform(_ job: WriteJob, at index: Int, _ commit: inout Commit) throws {
        let afterwards: @Sendable () -> Void
        try transaction.savepoint.run()
        do {
            afterwards = try job.run(database, &batch)
        } catch {
            let failure = StoreError(writing: error, path: store.file.path)
            // A full or failing disk may have rolled back the whole transaction; then the commit has failed.
            guard sqlite3_get_autocommit(database.sqliteConnection) == 0, !failure.isFinal else { throw error }
            try transaction.rollbackToSavepoint.run()
            try transaction.release.run()
            commit.answered.insert(index)
            job.fail(failure)
            return
        }
        try transaction.release.run()
        commit.afterwards.append(afterwards)
    }

    /// Makes changes in one transaction, durable when this returns.
    /// - Throws: `DatabaseError`, and errors of `body`; nothing has changed then.
    private func transact<Result>(_ body: () throws -> Result) throws -> Result {
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

    /// Simulates a slower disk, for benchmarks.
    private func delayCommit() {
        let delay = store.configuration.commitDelay
        if delay > .zero { usleep(UInt32(clamping: delay.wholeNanoseconds / 1000)) }
    }

    // MARK: - Failures

    /// Handles a failed commit: refuses its requests, except journal events and removals.
    private func failed(_ commit: Commit, _ error: any Error) {
        let error = StoreError(writing: error, path: store.file.path)
        enterFailure(error)
        refuse(first: commit.count, except: commit.answered, error)
    }

    /// Refuses all requests.
    private func refuse() {
        backlog.take()
        refuse(first: backlog.requests.count, except: [], failure ?? .closed)
    }

    private func refuse(first count: Int, except answered: Set<Int>, _ error: StoreError) {
        backlog.refuse(first: count, except: answered, keepsEvents: schedule.health != .failed, error)
        dropOldEvents()
    }

    private func dropOldEvents() {
        let dropped = backlog.dropEvents(beyond: store.configuration.retainedEvents)
        guard dropped > 0 else { return }
        store.logger.error(
            "the store cannot be written; journal events are lost",
            metadata: ["events": "\(dropped)"]
        )
    }

    /// Records that the store cannot write, for now or permanently.
    private func enterFailure(_ error: StoreError) {
        let isNew = failure == nil
        failure = error
        guard error.isFinal else {
            store.gate.set(.stalled)
            schedule.became(.stalled, now: now)
            if isNew {
                store.logger.error(
                    "the store cannot be written; refusing notifications until it can",
                    metadata: ["error": "\(error)"]
                )
            }
            return
        }
        store.gate.set(.failed)
        schedule.became(.failed, now: now)
        store.logger.critical("the store has failed", metadata: ["error": "\(error)"])
        store.onFatal(error)
    }

    /// Tests whether the disk can be written and has free space.
    private func probe() {
        backlog.take()
        dropOldEvents()
        guard !store.gate.has(.displaced) else {
            failure = failure ?? .displaced(path: store.file.path)
            return schedule.became(.stalled, now: now)
        }
        if failure != nil {
            do {
                try copyLog()
                try transact { try settings.probe(database) }
            } catch {
                enterFailure(StoreError(writing: error, path: store.file.path))
                return
            }
            schedule.probed(pagesInLog: log.pages)
            failure = nil
            store.gate.clear(.stalled)
            store.logger.notice("the store can be written again")
            schedule.became(.healthy, now: now)
        }
        spaceCheckedAt = nil
        checkSpace()
    }

    /// Copies the log into the file, so that the log can start over.
    ///
    /// On a full disk the log cannot grow. If the file has free pages, the log then has room for removals, which free more.
    private func copyLog() throws {
        do {
            let result = try database.checkpoint(.passive)
            schedule.checkpointed((result.walFrameCount, result.checkpointedFrameCount))
        } catch {
            if StoreError(writing: error, path: store.file.path).isFinal { throw error }
        }
    }

    // MARK: - Checkpoints

    /// Copies the write-ahead log into the file.
    private func checkpoint(_ mode: CheckpointPolicy.Mode) {
        let begin = now
        do {
            let result = try database.checkpoint(mode == .passive ? .passive : .restart)
            schedule.checkpointed((result.walFrameCount, result.checkpointedFrameCount))
        } catch {
            schedule.checkpointed(nil)
            // A reader that does not end in time is harmless: the next checkpoint copies the rest.
            if let error = error as? DatabaseError, error.resultCode == .SQLITE_BUSY { return }
            failed(Commit(), error)
        }
        store.statistics.checkpointed(in: now - begin)
    }

    /// Leaves a file without a log, marked as closed cleanly.
    private func finish() {
        store.readers.close()
        guard schedule.health != .failed else { return }
        if !backlog.requests.isEmpty {
            store.logger.error(
                "the store cannot be written, and is closed: journal events are lost, and devices may get notifications again",
                metadata: ["changes": "\(backlog.requests.count)"]
            )
        }
        do {
            try transact {
                try writeTallies(upTo: tables.journal.position, isWanted: true)
                try settings.close(database, nextSequence: batch.nextSequence)
            }
            try database.checkpoint(.truncate)
        } catch {
            store.logger.warning(
                "the store was not closed cleanly; the next start will check it",
                metadata: ["error": "\(StoreError(writing: error, path: store.file.path))"]
            )
        }
    }
}
