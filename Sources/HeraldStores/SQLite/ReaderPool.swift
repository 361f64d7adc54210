import Dispatch
import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// Something to be read.
///
/// The same closure does both: within the transaction it reads, and returns what is to be done with it afterwards.
struct ReadJob: Sendable {
    /// Reads; must not throw, and tells of its failure by what it returns.
    let run: @Sendable (Database) -> @Sendable () -> Void
    /// Tells that nothing was read.
    let fail: @Sendable (StoreError) -> Void
    /// Whether it takes no longer than a few look-ups, so that others may wait for it.
    let isQuick: Bool
}

/// Connections that can only read, each with a thread of its own.
///
/// A thread that wakes takes all short reads that wait, up to a limit, and does them in one transaction: of a fleet that
/// comes back each device reads twice, and waking a thread, a transaction, and telling an event loop cost more than the
/// reading. Anything longer is done by itself, and another thread is woken for what comes meanwhile.
final class ReaderPool: Sendable {
    /// How many short reads are done in one transaction: all of them wait for the last.
    private static let batchLimit = 32
    /// How long a thread lets short reads gather after it has done some; one that sleeps reads at once.
    ///
    /// 2 ms, as long as the writer gathers what is to be committed.
    private static let gatherMicroseconds: UInt32 = 2000

    private struct State {
        var jobs: [ReadJob] = []
        /// Threads that sleep and have not been rung for.
        var sleeping = 0
        /// Threads that will soon look for jobs again.
        var attentive = 0
        /// Threads that have not ended.
        var living = 0
        var isClosed = false
    }

    private let path: String
    private let state: Mutex<State>
    private let bell = DispatchSemaphore(value: 0)
    private let lastEnd = DispatchSemaphore(value: 0)

    /// Starts a thread for each connection; they end with ``close()``.
    init(_ connections: [DatabaseQueue], path: String) {
        self.path = path
        state = Mutex(State(attentive: connections.count, living: connections.count))
        for connection in connections {
            let thread = Thread { self.serve(connection) }
            thread.name = "herald-reader"
            thread.start()
        }
    }

    /// Reads in one transaction: all that `body` sees is of one moment, at which every commit that was reported before
    /// is included.
    ///
    /// For anything that may take its time.
    /// - Throws: ``StoreError``.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await read(isQuick: false, body)
    }

    /// The same for a few look-ups, which share a transaction with those of others.
    /// - Throws: ``StoreError``.
    func readQuickly<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await read(isQuick: true, body)
    }

    private func read<Value: Sendable>(
        isQuick: Bool,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            submit(isQuick: isQuick, body) { continuation.resume(with: $0) }
        }
    }

    /// As the above for those who cannot wait; `done` is called once, outside the transaction, mostly from a thread of
    /// the pool.
    func submit<Value: Sendable>(
        isQuick: Bool,
        _ body: @escaping @Sendable (Database) throws -> Value,
        _ done: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let path = path
        let job = ReadJob(
            run: { database in
                let result = Result { try body(database) }.mapError { StoreError(reading: $0, path: path) as any Error }
                return { done(result) }
            },
            fail: { done(.failure($0)) },
            isQuick: isQuick
        )
        let (isTaken, rings) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.jobs.append(job)
            return (true, ReaderPool.wakesOne(&state))
        }
        if rings { bell.signal() }
        if !isTaken { job.fail(.closed) }
    }

    /// Whether a thread is to be woken: there is work, nobody looks for it, and one sleeps.
    private static func wakesOne(_ state: inout State) -> Bool {
        guard !state.jobs.isEmpty, state.attentive == 0, state.sleeping > 0 else { return false }
        state.sleeping -= 1
        state.attentive += 1
        return true
    }

    // For the threads.

    private func serve(_ connection: DatabaseQueue) {
        do {
            try connection.unsafeRead { database in
                let begin = try HotStatement(database, sql: "BEGIN")
                let commit = try HotStatement(database, sql: "COMMIT")
                let rollback = try HotStatement(database, sql: "ROLLBACK")
                while let jobs = take() {
                    let isLong = jobs.count == 1 && !jobs[0].isQuick
                    do {
                        try begin.run()
                    } catch {
                        for job in jobs { job.fail(StoreError(reading: error, path: path)) }
                        if isLong { becomeAttentive() }
                        continue
                    }
                    let afterwards = jobs.map { $0.run(database) }
                    // A transaction that only read has nothing to lose.
                    do { try commit.run() } catch { try? rollback.run() }
                    if isLong { becomeAttentive() }
                    for done in afterwards { done() }
                    // What comes next is gathered, instead of waking the thread for each.
                    if !isLong, !isClosed { usleep(ReaderPool.gatherMicroseconds) }
                }
            }
            // One that cannot be closed now is closed when it goes.
            try? connection.close()
        } catch {
            // Not even a statement could be prepared: whoever asks is told, until the store is closed.
            while let jobs = take() {
                for job in jobs { job.fail(StoreError(reading: error, path: path)) }
                if jobs.count == 1, !jobs[0].isQuick { becomeAttentive() }
            }
        }
        let isLast = state.withLock { state in
            state.living -= 1
            return state.living == 0
        }
        if isLast { lastEnd.signal() }
    }

    /// The next short reads, or one long one; sleeps until there is something; nil once the pool is closed.
    private func take() -> [ReadJob]? {
        while true {
            let (jobs, rings, ends) = state.withLock { state -> ([ReadJob], Bool, Bool) in
                if state.jobs.isEmpty {
                    state.attentive -= 1
                    if !state.isClosed { state.sleeping += 1 }
                    return ([], false, state.isClosed)
                }
                if !state.jobs[0].isQuick {
                    state.attentive -= 1
                    return ([state.jobs.removeFirst()], ReaderPool.wakesOne(&state), false)
                }
                let quick = state.jobs.prefix(ReaderPool.batchLimit).prefix { $0.isQuick }
                if quick.count == state.jobs.count {
                    defer { state.jobs.removeAll(keepingCapacity: true) }
                    return (Array(quick), false, false)
                }
                let taken = Array(quick)
                state.jobs.removeFirst(taken.count)
                return (taken, false, false)
            }
            if rings { bell.signal() }
            if ends { return nil }
            if !jobs.isEmpty { return jobs }
            bell.wait()
        }
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func becomeAttentive() {
        state.withLock { $0.attentive += 1 }
    }

    /// Takes no more reads, and closes the connections after those that were left (GRDB traps if one is used later).
    ///
    /// Called once, from the writer's thread, which may wait.
    func close() {
        let rung = state.withLock { state in
            state.isClosed = true
            let rung = state.sleeping
            state.attentive += rung
            state.sleeping = 0
            return rung
        }
        for _ in 0..<rung { bell.signal() }
        lastEnd.wait()
    }
}
