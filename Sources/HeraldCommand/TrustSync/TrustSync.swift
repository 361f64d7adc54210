import HeraldCluster
import HeraldModel
import HeraldTrust
import Logging
import Synchronization

/// Keeps the trust folder of a node and the cluster's log the same.
///
/// Local changes, by the service or by a command, are noticed within ``look``. Those of other nodes are taken as they come.
final class TrustSync: Sendable {
    /// The time between two looks at the folder.
    static let look = Duration.milliseconds(250)
    /// The pause after a failure.
    private static let pause = Duration.seconds(1)
    /// Facts that are stored in the log together.
    private static let shareLimit = 512
    /// Facts that the ledger takes in one transaction: each costs a sync.
    private static let takeLimit = 2000

    /// The folder, whose invitations the log decides.
    let folder: TrustFolder
    private let sharing: FolderSharing
    private let log: TrustLog
    private let inbox: TrustInbox
    private let followers: [LogFollower]
    private let clock: any WallClock
    private let logger: Logger
    private let failure = Mutex<String?>(nil)
    private let opened = Mutex<UInt32?>(nil)
    private let loggedFiles = Mutex<[String]>([])
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

    init(
        _ sharing: FolderSharing,
        log: TrustLog,
        followers: [LogFollower],
        inbox: TrustInbox,
        clock: any WallClock,
        logger: Logger
    ) {
        self.sharing = sharing
        self.log = log
        self.followers = followers
        self.inbox = inbox
        self.clock = clock
        self.logger = logger
        var folder = sharing.folder
        folder.invitationUses = SharedInvitations(log: log, sharing: sharing, clock: clock)
        self.folder = folder
    }

    // MARK: - Before the service runs

    /// Begins to follow the log, and takes everything that was stored before this call.
    /// - Throws: ``LogFailure``, or ``TrustError``.
    func start() async throws {
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

    func close() {
        for follower in followers { follower.cancel() }
    }

    // MARK: - While it runs

    /// The age of what was taken: everything that was stored so long ago, or before, has come.
    var lag: Duration { followers.map(\.lag).max() ?? .zero }

    /// The newest token key that this node opens, for its record in the cluster.
    /// - Throws: ``TrustError`` before the service runs, if the keys cannot be read.
    func newestTokenKey() throws -> UInt32 {
        try opened.withLock { $0 } ?? folder.tokenKeys().openKeys.first?.id ?? 0
    }

    /// Notes the newest token key that the service opens.
    func opens(_ key: UInt32) { opened.withLock { $0 = key } }

    /// The reason why trust is not in common now; nil if it is.
    var problem: String? { failure.withLock { $0 } }

    /// Faults of files that the other nodes do not get.
    var tooLongFiles: [String] { sharing.tooLongFiles }

    /// Shares and takes changes until the task is cancelled.
    /// - Parameters:
    ///   - onLook: Called at each look at the folder.
    ///   - onChange: Puts a changed folder in force.
    func run(onLook: @escaping @Sendable () -> Void, onChange: @escaping @Sendable () async -> Void) async {
        await withTaskGroup { group in
            group.addTask {
                for await _ in self.inbox.arrivals {
                    await self.attempt { if try await self.takeArrived() { await onChange() } }
                }
            }
            group.addTask {
                while !Task.isCancelled {
                    await self.attempt { while try await self.shareOwn(onChange) {} }
                    self.logTooLongFiles()
                    onLook()
                    try? await Task.sleep(for: Self.look)
                }
            }
        }
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
    private func shareOwn(_ onChange: @Sendable () async -> Void = {}) async throws -> Bool {
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
        if try await sharing.wereShared(shared, now: clock.now()) { await onChange() }
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
