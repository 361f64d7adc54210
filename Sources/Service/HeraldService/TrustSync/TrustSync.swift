package import HeraldCluster
import HeraldMailbox
package import HeraldModel
package import HeraldTrust
package import Logging
import NIOCore
import Synchronization

/// Keeps the trust folder of a node and the cluster's log the same.
///
/// Local changes, by the service or by a command, are noticed within ``look``. Those of other nodes are taken as they come.
package final class TrustSync: Sendable {
    /// The time between two looks at the folder.
    package static let look = Duration.milliseconds(250)
    /// The pause after a failure.
    private static let pause = Duration.seconds(1)
    /// Facts that are stored in the log together.
    private static let shareLimit = 512
    /// Facts that the ledger takes in one transaction: each costs a sync.
    private static let takeLimit = 2000

    /// The folder, whose invitations the log decides.
    package let folder: TrustFolder
    private let sharing: FolderSharing
    private let log: TrustLog
    private let inbox: TrustInbox
    private let followers: [LogFollower]
    private let scheduler: any ClusterScheduler
    private let clock: any WallClock
    private let logger: Logger
    private let failure = Mutex<String?>(nil)
    private let opened = Mutex<UInt32?>(nil)
    private let loggedFiles = Mutex<[String]>([])
    /// The changes of the folder by facts of the log, and how many of them are in force.
    private let changes = Mutex((made: 0, inForce: 0))
    private let freshness = Freshness()
    private let overwritten = Mutex(Overwritten())

    /// Facts that somebody has overwritten in the log: this node shares everything again, since nobody knows which they were.
    private struct Overwritten {
        /// The least time between two times: it reads every fact of the log.
        static let pause = Duration.seconds(60)

        var isFound = false
        var shared: ContinuousClock.Instant?

        /// Whether it is time to share everything again.
        mutating func take() -> Bool {
            guard isFound, shared.map({ .now - $0 >= Self.pause }) ?? true else { return false }
            (isFound, shared) = (false, .now)
            return true
        }
    }

    package init(
        _ sharing: FolderSharing,
        log: TrustLog,
        followers: [LogFollower],
        inbox: TrustInbox,
        scheduler: any ClusterScheduler,
        clock: any WallClock,
        logger: Logger
    ) {
        self.sharing = sharing
        self.log = log
        self.followers = followers
        self.inbox = inbox
        self.scheduler = scheduler
        self.clock = clock
        self.logger = logger
        var folder = sharing.folder
        folder.invitationUses = SharedInvitations(log: log, sharing: sharing, clock: clock) { done in
            inbox.catchUp(followers, done)
        }
        self.folder = folder
    }

    // MARK: - Before the service runs

    /// Begins to follow the log, and takes everything that was stored before this call.
    /// - Throws: ``LogFailure``, or ``TrustError``.
    package func start() async throws {
        for follower in followers { try await follower.start() }
        _ = try await takeArrived()
    }

    /// Takes everything that was stored before this call.
    func catchUp() async throws {
        for follower in followers {
            try await withCheckedThrowingContinuation { continuation in
                follower.catchUp { continuation.resume(with: $0) }
            }
        }
        _ = try await takeArrived()
    }

    /// Stores everything that the log lacks.
    func shareAll() async throws {
        while try await shareOwn() {}
    }

    package func close() {
        for follower in followers { follower.cancel() }
    }

    // MARK: - While it runs

    /// The age of what was taken: everything that was stored so long ago, or before, has come.
    package var lag: Duration { followers.map(\.lag).max() ?? .zero }

    /// The newest token key that this node opens, for its record in the cluster.
    /// - Throws: ``TrustError`` before the service runs, if the keys cannot be read.
    func newestTokenKey() throws -> UInt32 {
        try opened.withLock { $0 } ?? folder.tokenKeys().openKeys.first?.id ?? 0
    }

    /// Notes the newest token key that the service opens.
    package func opens(_ key: UInt32) { opened.withLock { $0 = key } }

    /// The reason why trust is not in common now; nil if it is.
    package var problem: String? { failure.withLock { $0 } }

    /// Waits until the other nodes can learn all that was changed in this folder.
    /// - Returns: The reason why they cannot, after a time; nil when they can.
    func whyUnshared(after time: Duration) async -> String? {
        let end = ContinuousClock.now + time
        while true {
            guard let own = try? await sharing.unshared(limit: 1), !own.isEmpty else { return nil }
            guard .now < end, !Task.isCancelled else { return problem ?? "the NATS servers have not answered yet" }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Faults of files that the other nodes do not get.
    var tooLongFiles: [String] { sharing.tooLongFiles }

    /// Shares and takes changes until the task is cancelled.
    ///
    /// `onLook` is called at each look at the folder. `onChange` puts a changed folder in force.
    package func run(
        onLook: @escaping @Sendable () -> Void,
        onChange: @escaping @Sendable () async throws -> Void
    ) async {
        await withTaskGroup { group in
            group.addTask {
                var stillness = Stillness(at: self.scheduler.now)
                for await _ in self.inbox.arrivals.stream {
                    let (now, fresh) = (self.scheduler.now, self.followers.map(\.fresh).min())
                    await self.takeIntoForce(onChange)
                    // Also after a failure, which says itself what is not in force.
                    if let end = stillness.end(of: fresh ?? now, at: now) { self.freshness.extend(to: end) }
                }
                self.inbox.end()
            }
            group.addTask {
                while !Task.isCancelled {
                    await self.attempt { while try await self.shareOwn(onChange) {} }
                    self.logTooLongFiles()
                    self.inbox.wake()
                    onLook()
                    try? await Task.sleep(for: Self.look)
                }
            }
        }
    }

    /// Takes what has come, puts it in force, and tells those who wait for it.
    private func takeIntoForce(_ onChange: @Sendable () async throws -> Void) async {
        let waiting = inbox.waiting()
        await attempt {
            var isInForce = false
            defer { for done in waiting { done(isInForce ? .success(()) : .failure(.unavailable)) } }
            if try await takeArrived() { noteChange() }
            isInForce = await putInForce(onChange)
        }
    }

    private func noteChange() { changes.withLock { $0.made += 1 } }

    /// - Returns: Whether every change that was noted before this call is in force; a failure is logged by the reload.
    private func putInForce(_ onChange: @Sendable () async throws -> Void) async -> Bool {
        let (made, inForce) = changes.withLock { $0 }
        guard inForce < made else { return true }
        do { try await onChange() } catch { return false }
        changes.withLock { $0.inForce = max($0.inForce, made) }
        return true
    }

    private func logTooLongFiles() {
        let present = sharing.tooLongFiles
        let former = loggedFiles.withLock { logged in
            defer { logged = present }
            return logged
        }
        for file in present where !former.contains(file) { logger.warning("\(file)") }
    }

    /// Does work; a failure is logged once, and followed by a pause.
    private func attempt(_ work: () async throws -> Void) async {
        do {
            try await work()
            if failure.withLock({ $0.take() }) != nil { logger.notice("trust is in common with the other nodes again") }
        } catch {
            let text = "\(error)"
            let isNew = failure.withLock { failure in
                defer { failure = text }
                return failure != text
            }
            if isNew {
                logger.warning("trust is not in common with the other nodes now", metadata: ["error": "\(text)"])
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    /// - Returns: Whether there may be more.
    private func shareOwn(_ onChange: @Sendable () async throws -> Void = {}) async throws -> Bool {
        if overwritten.withLock({ $0.take() }) { try await sharing.begin(anew: true) }
        let own = try await sharing.unshared(limit: Self.shareLimit)
        guard !own.isEmpty else { return false }
        typealias Shared = (UnsharedFact, inLog: SharedFact)
        let results = await withTaskGroup(of: Result<Shared, any Error>.self) { group in
            for unshared in own {
                group.addTask {
                    do { return .success((unshared, try await self.log.share(unshared.fact))) } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let shared = results.compactMap { try? $0.get() }
        // Before the folder has it: whoever finds it there puts it in force.
        noteChange()
        if try await sharing.wereShared(shared, now: clock.now()) {
            noteChange()
            _ = await putInForce(onChange)
        }
        for case .failure(let error) in results { throw error }
        return own.count == Self.shareLimit
    }

    /// - Returns: Whether the folder has changed.
    private func takeArrived() async throws -> Bool {
        var isChanged = false
        while true {
            let entries = inbox.next(Self.takeLimit)
            guard !entries.isEmpty else { return isChanged }
            let facts = entries.compactMap { entry in fact(entry).map { ($0, entry.sequence) } }
            // The facts of files have a follower of their own.
            let position = facts.last { $0.0.key.kind.isOfLedger }?.1
            do {
                if try await sharing.take(facts.map(\.0), upTo: position, now: clock.now()) { isChanged = true }
            } catch {
                inbox.putBack(entries)
                throw error
            }
        }
    }

    private func fact(_ entry: LogEntry) -> SharedFact? {
        if let fact = log.fact(entry) { return fact }
        if entry.isSetAside {
            overwritten.withLock { $0.isFound = true }
            return nil
        }
        logger.error(
            "left out a record of the cluster's trust that cannot be read",
            metadata: ["record": "\(entry.subject)"]
        )
        return nil
    }
}

/// The trust, for decisions that rest on it.
extension TrustSync: SharedState {
    func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        inbox.catchUp(followers) { done($0.mapError { $0 as any Error }) }
    }

    func isBehind(_ part: SharedPart) -> Bool { freshness.isOver(at: scheduler.now) }

    /// Decides how long what was taken counts as fresh: for ``ClusterLimits/followerFreshness`` after each look, while the
    /// log is heard.
    ///
    /// The election of a leader makes nobody wait. A node that has stood still hears the log first.
    struct Stillness {
        private var last: NIODeadline
        /// The end of the last time in which nothing was looked at.
        private var resumed = NIODeadline.uptimeNanoseconds(0)

        /// Begins after everything was taken once.
        init(at now: NIODeadline) { last = now }

        /// Everything that was stored before `fresh` has been taken; `now` is the moment of the look.
        /// - Returns: nil while nothing is known of what happened before ``resumed``.
        mutating func end(of fresh: NIODeadline, at now: NIODeadline) -> NIODeadline? {
            if now - last > TimeAmount(ClusterLimits.followerFreshness) { resumed = now }
            last = now
            guard fresh >= resumed else { return nil }
            let time = ClusterLimits.followerFreshness
            return min(now + TimeAmount(time), fresh + TimeAmount(time + ClusterLimits.followerSilence))
        }
    }
}
