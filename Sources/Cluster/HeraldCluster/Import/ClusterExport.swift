package import HeraldMailbox
import HeraldModel
package import Logging
import Synchronization

/// Reads everything that a cluster has of its devices, while its nodes serve.
///
/// Each stream is read as of a moment after the call. A stream whose records name those of another one is read later, but the
/// apps come first: what belongs to an app that was made meanwhile is newer than the backup. Notifications come last, so that
/// one that was delivered meanwhile is not among them.
package struct ClusterExport: Sendable {
    /// Entries that are handed over together.
    private static let slice = 1000
    /// Barriers beyond the first one that a follower awaits.
    private static let rounds = 4

    private let log: any ReplicatedLog
    private let barriers: LogBarriers
    private let partitions: Partitions
    private let scheduler: any ClusterScheduler
    private let logger: Logger

    /// The logger gets damaged records, which are left out.
    package init(
        log: any ReplicatedLog,
        barriers: LogBarriers,
        partitions: Partitions,
        scheduler: any ClusterScheduler,
        logger: Logger
    ) {
        self.log = log
        self.barriers = barriers
        self.partitions = partitions
        self.scheduler = scheduler
        self.logger = logger
    }

    /// The streams, in the order in which they are read.
    private var streams: [LogStream] {
        let all = partitions.all
        return [.apps] + all.map { .registrations($0) } + all.map { .devices($0) } + [.channels, .broadcasts]
    }

    /// Reads everything; `take` gets it in the order of each stream.
    /// - Throws: ``LogFailure``, ``RecordError`` for a record of another version, or an error of `take`.
    package func run(_ take: ([StoreEntry]) async throws -> Void) async throws {
        var slots: Set<RegisteredSlot> = []
        for stream in streams {
            try await read(stream) { entries in
                for case .registrations(_, let all, _, _) in entries {
                    slots.formUnion(
                        all.lazy.filter(\.isLive).map { RegisteredSlot($0.slot, generation: $0.generation) }
                    )
                }
                try await take(entries)
            }
        }
        try await readNotifications(in: slots, take)
    }

    /// Reads slots by name: of one that is written all the time, a follower may hear too late for the backup.
    private func readNotifications(
        in slots: Set<RegisteredSlot>,
        _ take: ([StoreEntry]) async throws -> Void
    ) async throws {
        for (partition, slots) in Dictionary(grouping: slots, by: { partitions.partition(of: $0.slot.device) }) {
            let stream = LogStream.mailbox(partition)
            for slice in slots.chunks(ofCount: ClusterLimits.slotsPerRead - 1) {
                let subjects = slice.map { LogSubject.slot($0.slot, generation: $0.generation, partition) }
                let found = try await withCheckedThrowingContinuation { continuation in
                    barriers.read(subjects, in: stream) { continuation.resume(with: $0) }
                }
                try await take(found.compactMap { try entry($0, of: stream) })
            }
        }
    }

    private func read(_ stream: LogStream, _ take: ([StoreEntry]) async throws -> Void) async throws {
        let (batches, arrived) = AsyncStream.makeStream(of: [LogEntry].self)
        let outcome = Mutex<Result<Void, LogFailure>?>(nil)
        let follower = LogFollower(
            stream,
            filters: filters(of: stream),
            log: log,
            barriers: barriers,
            scheduler: scheduler
        ) { arrived.yield($0) }
        defer { follower.cancel() }
        let end: LogFollower.Done = { result in
            outcome.withLock { $0 = result }
            arrived.finish()
        }
        follower.start { result in
            if case .failure = result { end(result) } else { ClusterExport.catchUp(follower, Self.rounds, end) }
        }
        var entries: [StoreEntry] = []
        for await batch in batches {
            for entry in batch {
                if let taken = try self.entry(entry, of: stream) { entries.append(taken) }
            }
            guard entries.count >= Self.slice else { continue }
            try await take(entries)
            entries = []
        }
        try outcome.withLock { $0 }?.get()
        try await take(entries)
    }

    /// Lets a follower catch up several times.
    ///
    /// A record that is replaced before it is reported is left out, and its successor comes after the barrier. A device or a
    /// registration does not change that often.
    private static func catchUp(_ follower: LogFollower, _ rounds: Int, _ done: @escaping LogFollower.Done) {
        follower.catchUp { result in
            if case .failure = result { return done(result) }
            if rounds > 1 { catchUp(follower, rounds - 1, done) } else { done(result) }
        }
    }

    /// Without broadcasts that nobody stores.
    private func filters(of stream: LogStream) -> [LogSubject]? {
        switch stream {
        case .broadcasts: [LogSubject("\(stream.subjects.text.dropLast())stored.*")]
        default: nil
        }
    }

    private func entry(_ entry: LogEntry, of stream: LogStream) throws -> StoreEntry? {
        guard !entry.isSetAside else { return nil }
        do throws(RecordError) {
            return entry.isTombstone ? end(entry, of: stream) : try content(entry, of: stream)
        } catch {
            if case .otherVersion = error { throw error }
            logger.error("left out a record of the cluster's log: \(error)", metadata: ["subject": "\(entry.subject)"])
            return nil
        }
    }

    private func end(_ entry: LogEntry, of stream: LogStream) -> StoreEntry? {
        switch stream {
        case .apps: entry.subject.app.map { .appForgotten($0) }
        case .channels: entry.subject.channel.map { .channelDeleted($0) }
        case .mailbox:
            entry.subject.slot.map { .notificationEnded(RegisteredSlot($0.slot, generation: $0.generation)) }
        default: nil
        }
    }

    private func content(_ entry: LogEntry, of stream: LogStream) throws(RecordError) -> StoreEntry? {
        switch stream {
        case .apps: return .app(try AppRecord(entry.payload))
        case .devices:
            let device = try DeviceLogRecord(entry.payload)
            return .device(device.id, device.number, device.record)
        case .registrations:
            let all = try DeviceRegistrations(entry.payload)
            return .registrations(
                all.device,
                all.registrations,
                feedback: all.feedback,
                generationFloor: all.generationFloor
            )
        case .channels: return .channel(try BroadcastChannel(entry.payload))
        case .broadcasts: return .broadcast(try BroadcastRecord(entry.payload).broadcast.numbered(entry.sequence))
        case .mailbox:
            guard let place = entry.subject.slot else { return nil }
            let notification = try SlotRecord(entry.payload).notification(to: place.slot)
            return .notification(
                StoredNotification(
                    notification: notification,
                    generation: place.generation,
                    sequence: entry.sequence
                )
            )
        case .meta, .trust: return nil
        }
    }
}
