import Foundation
import HeraldCluster
package import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldNATS
import Logging
import NIOCore
import Synchronization

/// The drills of a cluster: started, listed and stopped at any node, in force at all of them.
///
/// Each is a record in the log until its time is over, so a node that starts meanwhile has it too.
final class ClusterDrills: Sendable {
    /// The engine, as a node has it.
    struct Engine: Sendable {
        let log: any ReplicatedLog
        let barriers: LogBarriers
        let scheduler: any ClusterScheduler
        let messages: any NodeMessages
        /// The other nodes that live.
        let others: @Sendable () -> Set<NodeName>
    }

    /// The time in which other nodes must say what they know of the drills: it is in their memory.
    private static let answerTime = Duration.seconds(1)
    /// The time that the log keeps a drill beyond its end: a node's clock may be behind.
    private static let slack = Duration.seconds(60)
    /// Numbers that are tried, while other nodes start drills too.
    private static let attempts = 8

    private let own: NodeName
    private let engine: Engine
    private let service: DrillService
    private let clock: any WallClock
    private let logger: Logger
    private let board: Mutex<DrillBoard>
    private let follower = Mutex<LogFollower?>(nil)

    init(own: NodeName, engine: Engine, service: DrillService, clock: any WallClock, logger: Logger) {
        self.own = own
        self.engine = engine
        self.service = service
        self.clock = clock
        self.logger = logger
        board = Mutex(DrillBoard(own: own))
    }

    /// Begins to follow the drills, and starts those that are active.
    /// - Throws: ``LogFailure`` if the log cannot be read or written.
    func start() async throws {
        engine.messages.receive(.drills) { [weak self] _, _, reply in
            if let self, let body = try? JSONEncoder().encode(ownEntries) { reply(ByteBuffer(bytes: body)) }
        }
        let follower = LogFollower(
            .meta,
            filters: [.drills],
            log: engine.log,
            barriers: engine.barriers,
            scheduler: engine.scheduler
        ) { [weak self] entries in
            for entry in entries { self?.take(entry) }
        }
        self.follower.withLock { $0 = follower }
        try await follower.start()
    }

    /// Ends the following.
    func close() { follower.withLock { $0.take() }?.cancel() }

    // MARK: - Operators

    /// Starts a drill at all nodes; one of the configuration at this node.
    /// - Throws: `AdminError`.
    func start(_ request: DrillRequest, _ drill: Drill, isConfigured: Bool) async throws -> DrillEntry {
        let record = DrillRecord(request, drill, started: clock.now(), node: own, isConfigured: isConfigured)
        for _ in 0..<Self.attempts {
            let id = board.withLock { $0.nextID }
            let message = LogMessage(
                .drill(id),
                payload: record.body,
                expectedSequence: 0,
                timeToLive: drill.duration + Self.slack
            )
            guard try await append(message) == nil else {
                board.withLock { $0.isTaken(id) }
                continue
            }
            guard let entry = ownEntries.first(where: { $0.id == id }) else {
                throw AdminError(.conflict, "drill \(id) was stopped at once, or this node has too many drills")
            }
            return entry
        }
        throw AdminError(.conflict, "other nodes start drills all the time: try again")
    }

    /// Renews a drill with a lease at all nodes.
    /// - Throws: `AdminError`.
    func renew(_ id: Int) async throws -> DrillEntry {
        let known = board.withLock { board in board.record(of: id).flatMap { ($0, board.sequence(of: id)) } }
        guard var record = known?.0, let sequence = known?.1, let drill = try? record.drill(), drill.isLease,
            let entry = ownEntries.first(where: { $0.id == id })
        else { throw DrillOperations.notRenewed(id) }
        record.started = clock.now().milliseconds
        let message = LogMessage(
            .drill(id),
            payload: record.body,
            expectedSequence: sequence,
            timeToLive: drill.duration + Self.slack
        )
        // Another renewal was quicker, or a stop; then the next one says so.
        guard try await append(message) == nil else { return entry }
        return ownEntries.first { $0.id == id } ?? entry
    }

    /// Stops a drill at all nodes.
    /// - Throws: `AdminError`.
    func stop(_ id: Int) async throws -> DrillEntry {
        guard let entry = await entries().first(where: { $0.id == id }) else {
            throw AdminError(.notFound, "no drill \(id) is active")
        }
        try await remove(id)
        return entry
    }

    /// Stops all drills, or those of this node's configuration.
    /// - Throws: `AdminError`.
    func stopAll(onlyConfigured: Bool) async throws -> [DrillEntry] {
        let ids = board.withLock { $0.ids(onlyConfiguredHere: onlyConfigured) }
        guard !ids.isEmpty else { return [] }
        let entries = await entries().filter { ids.contains($0.id) }
        for id in ids { try await remove(id) }
        return entries
    }

    /// The active drills of all nodes that answer, oldest first, with the hits of all.
    func entries() async -> [DrillEntry] {
        let answers = await withCheckedContinuation { continuation in
            engine.messages.ask(ByteBuffer(), as: .drills, of: engine.others(), within: Self.answerTime) {
                continuation.resume(returning: $0)
            }
        }
        // A node of another version may say something else.
        let others = answers.values.compactMap {
            try? JSONDecoder().decode([DrillEntry].self, from: Data($0.readableBytesView))
        }
        return DrillEntry.merged([ownEntries] + others)
    }

    private var ownEntries: [DrillEntry] {
        service.reports.map { report in
            var entry = DrillEntry(report)
            entry.nodes = [own.text]
            return entry
        }
    }

    // MARK: - The log

    private func remove(_ id: Int) async throws {
        guard let sequence = board.withLock({ $0.sequence(of: id) }) else { return }
        let lifetime = ClusterLimits.removedRecordTimeToLive
        let newest = try await append(.tombstone(.drill(id), expecting: sequence, timeToLive: lifetime))
        // Another node has renewed it, or somebody has overwritten it; without a message it is stopped.
        guard let newest, newest > 0 else { return }
        // If it moves once more, another node has stopped it.
        _ = try await append(.tombstone(.drill(id), expecting: newest, timeToLive: lifetime))
    }

    /// Appends a message, and takes it over here when it is stored.
    /// - Returns: Nil once it is stored; else the newest sequence of its subject, 0 without one, for another one came before it.
    /// - Throws: `AdminError` if it is not stored, or if nobody knows.
    private func append(_ message: LogMessage) async throws -> UInt64? {
        switch await engine.log.append(message, to: .meta) {
        case .stored(let sequence):
            take(LogEntry(subject: message.subject, sequence: sequence, payload: message.payload))
            return nil
        case .moved(let newest): return newest
        case .refused, .notSent: throw Self.notTaken
        case .unknown: throw Self.unanswered
        }
    }

    private func take(_ entry: LogEntry) {
        // Performed under the lock: whoever finds an entry taken finds its drill too.
        board.withLock { board in
            if let order = board.take(entry) { perform(order) }
        }
    }

    private func perform(_ order: DrillBoard.Order) {
        switch order {
        case .start(let id, let record):
            let age = record.age(at: clock.now())
            guard let drill = try? record.drill() else { return skip(id) }
            guard age < drill.duration, service.renew(id, age: age) == nil else { return }
            if service.start(drill, id: id, age: age, isConfigured: record.isConfigured) == nil {
                logger.warning(
                    "a drill of the cluster does not run here: too many are active",
                    metadata: ["drill": "\(id)"]
                )
            }
        case .stop(let id): _ = service.stop(id)
        case .skip(let id): skip(id)
        }
    }

    private func skip(_ id: Int) {
        logger.warning(
            "a drill of the cluster does not run here: another version of Herald made it",
            metadata: ["drill": "\(id)"]
        )
    }

    private static let notTaken = AdminError(.failed, "no NATS server takes the change now: nothing was changed")
    private static let unanswered = AdminError(
        .failed,
        "NATS did not answer; the change may have been made: see `herald drill list`"
    )
}

extension DrillEntry {
    /// The drills that several nodes report, with the hits of all.
    package static func merged(_ reports: [[DrillEntry]]) -> [DrillEntry] {
        var all: [Int: DrillEntry] = [:]
        for entry in reports.joined() {
            guard var known = all[entry.id] else {
                all[entry.id] = entry
                continue
            }
            known.hits += entry.hits
            known.nodes = ((known.nodes ?? []) + (entry.nodes ?? [])).sorted()
            all[entry.id] = known
        }
        return all.values.sorted { $0.id < $1.id }
    }
}

extension ClusterNode {
    /// The drills of the cluster, which a node's service performs.
    func drills(performedBy service: DrillService, clock: any WallClock, logger: Logger) -> ClusterDrills {
        let engine = ClusterDrills.Engine(
            log: log,
            barriers: LogBarriers(log: log, node: name),
            scheduler: EventLoopScheduler(link.connection.eventLoop),
            messages: questions.exchange,
            others: { [nodes] in nodes.others }
        )
        return ClusterDrills(own: name, engine: engine, service: service, clock: clock, logger: logger)
    }
}
