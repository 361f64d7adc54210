import Dispatch
import Foundation
import GRDB
import GRDBSQLite
import Synchronization

/// A read, and the report of its result.
struct ReadJob: Sendable {
    /// Reads within a transaction, without throwing, and returns the action to run afterwards.
    let run: @Sendable (Database) -> @Sendable () -> Void
    /// Reports that nothing was read.
    let fail: @Sendable (StoreError) -> Void
    /// Whether it takes no longer than a few look-ups, so that other reads may wait for it.
    let isQuick: Bool
}

/// Connections that can only read, each with its own thread.
///
/// A thread does all waiting quick reads in one transaction, up to a limit. After a reconnect of the fleet, each device
/// reads twice, and the wake-up, the transaction and the report to an event loop cost more than the read. A long read runs
/// alone, and another thread takes the reads that come meanwhile.
final class ReaderPool: Sendable {
    /// The most quick reads in one transaction: all of them wait for the last.
    private static let batchLimit = 32
    /// Pause in which quick reads gather after a batch: 2 ms, as for the writer.
    ///
    /// A sleeping thread reads at once.
    private static let gatherMicroseconds: UInt32 = 2000

    private struct State {
        var jobs: [ReadJob] = []
        /// Threads that sleep and have not been signalled.
        var sleeping = 0
        /// Threads that will take jobs without a signal.
        var active = 0
        /// Threads that have not ended.
        var running = 0
        var isClosed = false
    }

    private let path: String
    private let state: Mutex<State>
    private let signal = DispatchSemaphore(value: 0)
    private let allEnded = DispatchSemaphore(value: 0)

    /// Starts a thread for each connection; they end with ``close()``.
    init(_ connections: [DatabaseQueue], path: String) {
        self.path = path
        state = Mutex(State(active: connections.count, running: connections.count))
        for connection in connections {
            let thread = Thread { self.serve(connection) }
            thread.name = "herald-reader"
            thread.start()
        }
    }

    /// Reads in one transaction, which sees every commit that was reported before.
    ///
    /// For reads of any length.
    /// - Throws: ``StoreError``.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            submit(isQuick: false, body) { continuation.resume(with: $0) }
        }
    }

    /// Reads without waiting.
    ///
    /// `done` is called once, later, outside the transaction, mostly on a thread of the pool.
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
        let (isTaken, wakes) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.jobs.append(job)
            return (true, ReaderPool.wakesThread(&state))
        }
        if wakes { signal.signal() }
        // The caller may hold the lock that the report needs, so another thread reports.
        if !isTaken { DispatchQueue.global().async { job.fail(.closed) } }
    }

    /// Whether to wake a thread: there are jobs, no active thread, and a sleeping one.
    private static func wakesThread(_ state: inout State) -> Bool {
        guard !state.jobs.isEmpty, state.active == 0, state.sleeping > 0 else { return false }
        state.sleeping -= 1
        state.active += 1
        return true
    }

    // MARK: - Threads

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
                        if isLong { becomeActive() }
                        continue
                    }
                    let afterwards = jobs.map { $0.run(database) }
                    // A transaction that only reads loses nothing.
                    do { try commit.run() } catch { try? rollback.run() }
                    if isLong { becomeActive() }
                    for done in afterwards { done() }
                    // Lets the next quick reads gather, instead of waking the thread for each.
                    if !isLong, !isClosed { usleep(ReaderPool.gatherMicroseconds) }
                }
            }
            // A connection that cannot be closed now is closed when it is released.
            try? connection.close()
        } catch {
            // The connection is unusable: every read fails until the store is closed.
            while let jobs = take() {
                for job in jobs { job.fail(StoreError(reading: error, path: path)) }
                if jobs.count == 1, !jobs[0].isQuick { becomeActive() }
            }
        }
        let isLast = state.withLock { state in
            state.running -= 1
            return state.running == 0
        }
        if isLast { allEnded.signal() }
    }

    /// Waits for the next quick reads, or one long read; returns nil once the pool is closed.
    private func take() -> [ReadJob]? {
        while true {
            let (jobs, wakes, ends) = state.withLock { state -> ([ReadJob], Bool, Bool) in
                if state.jobs.isEmpty {
                    state.active -= 1
                    if !state.isClosed { state.sleeping += 1 }
                    return ([], false, state.isClosed)
                }
                if !state.jobs[0].isQuick {
                    state.active -= 1
                    return ([state.jobs.removeFirst()], ReaderPool.wakesThread(&state), false)
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
            if wakes { signal.signal() }
            if ends { return nil }
            if !jobs.isEmpty { return jobs }
            signal.wait()
        }
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func becomeActive() {
        state.withLock { $0.active += 1 }
    }

    /// Refuses further reads, and closes the connections after the pending ones.
    ///
    /// GRDB traps if one is used later.
    ///
    /// Called once, on the writer's thread, which may wait.
    func close() {
        let woken = state.withLock { state in
            state.isClosed = true
            let woken = state.sleeping
            state.active += woken
            state.sleeping = 0
            return woken
        }
        for _ in 0..<woken { signal.signal() }
        allEnded.wait()
    }
}
