package import HeraldMailbox
package import HeraldModel
package import Logging
import Synchronization

/// The channels of a cluster, each with its newest message, as records of the log.
///
/// All of it is in memory too. A message that was replaced, deleted or has expired leaves a line in this node's journal.
package final class ClusterChannels: Sendable {
    private struct Contents: Sendable {
        var channels: [ChannelID: Versioned<BroadcastChannel>] = [:]
        var newest: [ChannelID: Versioned<Broadcast>] = [:]
    }

    private let changes: RecordChanges
    private let journal: any JournalStore
    private let clock: any WallClock
    private let logger: Logger
    private let operations = KeyedOperations<ChannelID>()
    private let contents = Mutex(Contents())

    package init(changes: RecordChanges, journal: any JournalStore, clock: any WallClock, logger: Logger) {
        self.changes = changes
        self.journal = journal
        self.clock = clock
        self.logger = logger
    }

    // MARK: - Loading

    /// Loads everything; once, before any other call.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    package func load(from snapshot: LogSnapshot) async throws {
        try await snapshot.records(of: .channels, as: BroadcastChannel.self, logger) { channel, sequence in
            self.contents.withLock { $0.channels[channel.id] = Versioned(channel, sequence: sequence) }
        }
        try await snapshot.records(of: .broadcasts, as: Broadcast.self, logger) { broadcast, sequence in
            self.contents.withLock { $0.newest[broadcast.channel] = Versioned(broadcast, sequence: sequence) }
        }
        contents.withLock { contents in
            // Broadcasts of deleted channels wait for the end of their time in the log.
            contents.newest = contents.newest.filter { contents.channels[$0.key]?.record != nil }
        }
    }

    /// All channels in order of creation, with their messages, expired or not.
    package func stored() -> [StoredChannel] {
        contents.withLock { contents in
            contents.channels.values.sorted { $0.sequence < $1.sequence }.compactMap(\.record).map { channel in
                StoredChannel(channel: channel, newest: contents.newest[channel.id]?.record)
            }
        }
    }

    /// The number of channels of each app.
    package func counts() -> [AppNumber: Int] {
        contents.withLock { contents in
            contents.channels.values.reduce(into: [:]) { counts, channel in
                if let app = channel.record?.app { counts[app, default: 0] += 1 }
            }
        }
    }

    // MARK: - Changes

    /// Stores a new channel.
    package func create(_ channel: BroadcastChannel) async throws {
        try await changeChannel(channel.id) { $0 = channel }
    }

    /// Deletes a channel and its message; nothing happens if there is none.
    package func delete(_ id: ChannelID, at moment: WallTime) async throws {
        try await changeChannel(id) { $0 = nil }
        // The channel is gone, and its message cannot be read any more: if this fails, the log expires it.
        guard let former = try? await removeNewest(of: id, where: { _ in true }) else { return }
        journal.record([JournalEvent(.discardedChannelDeleted, former, at: moment)])
    }

    /// Stores a message as its channel's newest, unless the channel has a newer one already, or is gone.
    package func keep(_ broadcast: Broadcast, at moment: WallTime) async throws {
        guard let storedUntil = broadcast.storedUntil else { return }
        let rest = max(.seconds(1), storedUntil - clock.now()) + ClusterLimits.timeToLiveSlack
        let former = Mutex<Broadcast?>(nil)
        let isKept = try await changeNewest(of: broadcast.channel, timeToLive: rest) { [self] newest in
            guard contents.withLock({ $0.channels[broadcast.channel]?.record != nil }) else { return false }
            if let present = newest {
                // After a lost answer, its own.
                guard present != broadcast else { return true }
                guard present.number < broadcast.number else { return false }
                former.withLock { $0 = present }
            }
            newest = broadcast
            return true
        }
        guard isKept else { return }
        journal.record([JournalEvent(.storedForSubscribers, broadcast, at: moment)])
        guard let former = former.withLock({ $0 }) else { return }
        journal.record([JournalEvent(.replaced, former, at: moment, detail: .replacement(broadcast.id))])
    }

    /// Deletes messages that have expired, each with a line in the journal.
    package func removeExpired(at moment: WallTime) async throws {
        let expired = contents.withLock { contents in
            contents.newest.values.compactMap(\.record).filter { $0.isExpired(at: moment) }
        }
        for broadcast in expired {
            guard let removed = try await removeNewest(of: broadcast.channel, where: { $0.isExpired(at: moment) })
            else {
                continue
            }
            journal.record([JournalEvent(.discardedExpiredFromStorage, removed, at: moment)])
        }
    }

    // MARK: - Records

    private func changeChannel(
        _ id: ChannelID,
        _ edit: @escaping @Sendable (inout BroadcastChannel?) -> Void
    ) async throws {
        try await withCheckedThrowingContinuation { continuation in
            operations.run(id) { [self] finish in
                let known = contents.withLock { $0.channels[id] } ?? Versioned()
                changes.change(.channel(id), in: .channels, from: known, edit) { [self] result in
                    if let changed = try? result.get().0 {
                        contents.withLock { $0.channels[id] = changed.record == nil ? nil : changed }
                    }
                    finish()
                    continuation.resume(with: result.map { _ in })
                }
            }
        }
    }

    /// Removes the newest message of a channel.
    /// - Returns: The message; nil if there was none.
    private func removeNewest(
        of id: ChannelID,
        where isRemoved: @escaping @Sendable (Broadcast) -> Bool
    ) async throws -> Broadcast? {
        let former = Mutex<Broadcast?>(nil)
        try await changeNewest(of: id) { newest in
            guard let present = newest, isRemoved(present) else { return }
            former.withLock { $0 = present }
            newest = nil
        }
        return former.withLock { $0 }
    }

    private func changeNewest<Value: Sendable>(
        of id: ChannelID,
        timeToLive: Duration? = nil,
        _ edit: @escaping @Sendable (inout Broadcast?) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            operations.run(id) { [self] finish in
                let known = contents.withLock { $0.newest[id] } ?? Versioned()
                let subject = LogSubject.broadcasts(id)
                changes.change(subject, in: .broadcasts, from: known, timeToLive: timeToLive, edit) { [self] result in
                    if let changed = try? result.get().0 {
                        contents.withLock { $0.newest[id] = changed.record == nil ? nil : changed }
                    }
                    finish()
                    continuation.resume(with: result.map(\.1))
                }
            }
        }
    }
}
