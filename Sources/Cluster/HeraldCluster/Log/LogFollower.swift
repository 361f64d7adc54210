package import NIOCore
import Synchronization

/// Follows subjects of a stream, applies their entries in the order of the log, and knows how far it is.
///
/// It proves every ``ClusterLimits/followerTick`` that it is fresh: it writes a barrier, and sees it come back. A replica that
/// lags reports nothing, and looks like a quiet one. If nothing comes for ``ClusterLimits/followerSilence`` although there is
/// something, it begins to follow anew where it is.
package final class LogFollower: Sendable {
    package typealias Done = @Sendable (Result<Void, LogFailure>) -> Void

    private enum Patience {
        /// Waits for as long as it takes.
        case endless
        /// Fails after this moment.
        case until(NIODeadline)
        /// Fails when nothing has come for ``ClusterLimits/followerStart``: a large stream takes its time.
        case whileHearing
    }

    private struct Waiting: Sendable {
        let sequence: UInt64
        let patience: Patience
        let since: NIODeadline
        let done: Done

        var isStart: Bool { if case .whileHearing = patience { true } else { false } }

        /// The failure of one that has waited for too long.
        func failure(at now: NIODeadline, heard: NIODeadline, of stream: LogStream) -> LogFailure? {
            switch patience {
            case .endless: nil
            case .until(let deadline): deadline <= now ? .behind : nil
            case .whileHearing:
                now - max(since, heard) >= TimeAmount(ClusterLimits.followerStart) ? .silent(stream.name) : nil
            }
        }
    }

    private struct State {
        var position: UInt64 = 0
        /// In the order of their sequences.
        var waiting: [Waiting] = []
        /// Everything that was stored before this moment has been applied.
        var fresh: NIODeadline
        /// The last message.
        var heard: NIODeadline
        /// The beginning of the present following.
        var begun: NIODeadline
        var isProving = false
        var isStarted = false
        var isStartAbandoned = false
        var isCancelled = false
        var stop: StopFollowing?

        init(at now: NIODeadline) { (fresh, heard, begun) = (now, now, now) }

        /// Whether nothing has come for too long, although there is something: a barrier was stored with what is waited for,
        /// or before it.
        func isSilent(at now: NIODeadline) -> Bool {
            guard let first = waiting.lazy.map(\.since).min() else { return false }
            return now - max(first, heard, begun) >= TimeAmount(ClusterLimits.followerSilence)
        }
    }

    package let stream: LogStream
    private let freshness: Freshness
    private let filters: [LogSubject]
    private let first: UInt64?
    private let barrier: LogSubject
    private let log: any ReplicatedLog
    private let barriers: LogBarriers
    private let scheduler: any ClusterScheduler
    private let hearsSetAside: Bool
    private let apply: @Sendable ([LogEntry]) -> Void
    private let state: Mutex<State>

    /// Makes a follower, which begins after the last message that the caller knows; nil for none.
    ///
    /// Without `filters` it follows all records of the stream. No two of them match the same subject, and none matches
    /// a barrier. `freshness` is told of each proof: it lasts for ``ClusterLimits/followerFreshness``.
    ///
    /// `apply` takes over what the log has: first the newest entry of each subject, then all that comes, in the order
    /// of the log. Tombstones are among them, barriers are not, and entries that are set aside only with
    /// `hearsSetAside`. It runs on one thread at a time.
    package init(
        _ stream: LogStream,
        filters: [LogSubject]? = nil,
        after sequence: UInt64? = nil,
        log: any ReplicatedLog,
        barriers: LogBarriers,
        scheduler: any ClusterScheduler,
        freshness: Freshness = Freshness(),
        hearsSetAside: Bool = false,
        apply: @escaping @Sendable ([LogEntry]) -> Void
    ) {
        self.hearsSetAside = hearsSetAside
        self.stream = stream
        self.freshness = freshness
        self.filters = filters ?? stream.records
        first = sequence
        barrier = barriers.subject(in: stream)
        self.log = log
        self.barriers = barriers
        self.scheduler = scheduler
        self.apply = apply
        state = Mutex(State(at: scheduler.now))
    }

    /// Begins to follow, and waits until everything that was stored before this call has been applied.
    ///
    /// After a failure it may be called again; the cancellation of the task is one.
    /// - Throws: ``LogFailure`` if no barrier can be written, or if nothing comes for ``ClusterLimits/followerStart``.
    package func start() async throws {
        state.withLock { $0.isStartAbandoned = false }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                start { continuation.resume(with: $0) }
            }
        } onCancel: {
            abandonStart()
        }
    }

    /// ``start()`` with a callback, once, from any thread.
    package func start(_ done: @escaping Done) {
        let isFirst = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
        if isFirst {
            follow(after: first)
            tick()
        }
        catchUp(.whileHearing, done)
    }

    /// Ends the waiting of a start.
    private func abandonStart() {
        let abandoned = state.withLock { state in
            state.isStartAbandoned = true
            defer { state.waiting.removeAll { $0.isStart } }
            return state.waiting.filter(\.isStart)
        }
        for one in abandoned { one.done(.failure(.unavailable)) }
    }

    private func follow(after sequence: UInt64?) {
        state.withLock { $0.begun = scheduler.now }
        let stop = log.follow(filters + [barrier], in: stream, after: sequence) { [self] in received($0) }
        let isCancelled = state.withLock { state in
            state.stop = state.isCancelled ? nil : stop
            return state.isCancelled
        }
        if isCancelled { stop() }
    }

    /// Everything up to here has been applied.
    package var position: UInt64 { state.withLock { $0.position } }

    /// Everything that was stored before this moment has been applied.
    package var fresh: NIODeadline { state.withLock { $0.fresh } }

    /// The age of what was applied: everything that was stored so long ago, or before, is there.
    package var lag: Duration {
        let age = scheduler.now - fresh
        return .nanoseconds(max(0, age.nanoseconds))
    }

    /// Calls `done` when everything up to a sequence has been applied, from any thread, possibly before this returns.
    ///
    /// The position moves with the entries that are followed, and with the barriers of this node: whoever cannot wait for the
    /// next one calls ``catchUp(_:)``.
    package func wait(for sequence: UInt64, _ done: @escaping @Sendable () -> Void) {
        wait(for: sequence, .endless) { if case .success = $0 { done() } }
    }

    /// Applies everything that was stored before this call, by any node, and calls `done` once, from any thread.
    ///
    /// Calls at the same time share a barrier. It fails if no barrier can be written, or if none comes back within
    /// ``ClusterLimits/readDeadline``.
    package func catchUp(_ done: @escaping Done) {
        catchUp(nil, done)
    }

    /// Lets several followers catch up, and calls `done` once, from any thread: when all have, or one cannot.
    package static func catchUp(_ followers: [LogFollower], _ done: @escaping Done) {
        guard !followers.isEmpty else { return done(.success(())) }
        let state = Mutex((left: followers.count, result: Result<Void, LogFailure>.success(())))
        for follower in followers {
            follower.catchUp { result in
                let whole: Result<Void, LogFailure>? = state.withLock { state in
                    if case .failure = result { state.result = result }
                    state.left -= 1
                    return state.left == 0 ? state.result : nil
                }
                if let whole { done(whole) }
            }
        }
    }

    /// Ends the following; who waits for more fails.
    package func cancel() {
        let (stop, waiting) = state.withLock { state in
            defer {
                state.isCancelled = true
                state.stop = nil
                state.waiting = []
            }
            return (state.stop, state.waiting)
        }
        stop?()
        for one in waiting { one.done(.failure(.unavailable)) }
    }

    // MARK: - Waiting

    /// Writes a barrier, and waits until it comes back.
    ///
    /// `patience` is ``ClusterLimits/readDeadline`` from the write on, if it is nil.
    private func catchUp(_ patience: Patience?, _ done: @escaping Done) {
        let asked = scheduler.now
        barriers.pass(stream) { [self] result in
            switch result {
            case .failure(let failure): done(.failure(failure))
            case .success(let sequence):
                let patience = patience ?? .until(scheduler.now + TimeAmount(ClusterLimits.readDeadline))
                wait(for: sequence, patience) { [self] result in
                    if case .success = result {
                        state.withLock { $0.fresh = max($0.fresh, asked) }
                        freshness.extend(to: asked + TimeAmount(ClusterLimits.followerFreshness))
                    }
                    done(result)
                }
            }
        }
    }

    private func wait(for sequence: UInt64, _ patience: Patience, _ done: @escaping Done) {
        let one = Waiting(sequence: sequence, patience: patience, since: scheduler.now, done: done)
        let result: Result<Void, LogFailure>? = state.withLock { state in
            if sequence <= state.position { return .success(()) }
            if state.isCancelled || one.isStart && state.isStartAbandoned { return .failure(.unavailable) }
            // Mostly the last one.
            var index = state.waiting.endIndex
            while index > 0, state.waiting[index - 1].sequence > sequence { index -= 1 }
            state.waiting.insert(one, at: index)
            return nil
        }
        if let result { done(result) }
    }

    private func received(_ entries: [LogEntry]) {
        let records = entries.filter { $0.subject != barrier && (hearsSetAside || !$0.isSetAside) }
        if !records.isEmpty { apply(records) }
        guard let last = entries.last?.sequence else { return }
        let now = scheduler.now
        let reached = state.withLock { state in
            state.position = max(state.position, last)
            state.heard = now
            let reached = state.waiting.prefix { $0.sequence <= last }
            state.waiting.removeFirst(reached.count)
            return reached
        }
        for one in reached { one.done(.success(())) }
    }

    // MARK: - Freshness

    private struct Look {
        var overdue: [(done: Done, failure: LogFailure)] = []
        var proves = false
        /// The end of a following that has brought nothing although there is something, and the position.
        var silent: (stop: StopFollowing, position: UInt64)?
    }

    /// Fails what has waited for too long, and proves that the follower is fresh.
    private func tick() {
        let now = scheduler.now
        guard let look = state.withLock({ look(at: now, &$0) }) else { return }
        if let silent = look.silent {
            silent.stop()
            follow(after: silent.position > 0 ? silent.position : first)
        }
        for (done, failure) in look.overdue { done(.failure(failure)) }
        if look.proves { catchUp { [self] _ in state.withLock { $0.isProving = false } } }
        scheduler.run(after: ClusterLimits.followerTick) { [weak self] in self?.tick() }
    }

    /// - Returns: What to do; nil after the end.
    private func look(at now: NIODeadline, _ state: inout State) -> Look? {
        guard !state.isCancelled else { return nil }
        var look = Look()
        if state.isSilent(at: now) {
            look.silent = state.stop.map { ($0, state.position) }
            state.stop = nil
        }
        let heard = state.heard
        state.waiting.removeAll { one in
            guard let failure = one.failure(at: now, heard: heard, of: stream) else { return false }
            look.overdue.append((one.done, failure))
            return true
        }
        look.proves = !state.isProving && now - state.fresh >= TimeAmount(ClusterLimits.followerTick / 2)
        if look.proves { state.isProving = true }
        return look
    }
}
