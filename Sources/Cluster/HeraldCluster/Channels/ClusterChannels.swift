package import HeraldMailbox
package import HeraldModel
import Logging
import Synchronization

/// The channels of a cluster and their broadcasts, as records of the log that every node follows.
///
/// A broadcast is one message of the log, and its number is its sequence there. Each node hands it to its own subscribers when
/// it comes from the log: all nodes have the same order. The log keeps the last ``ClusterLimits/broadcastsPerChannel`` of each
/// channel, so that a node that was cut off for a while misses none.
///
/// The node that accepted a broadcast writes the lines of its life to its journal: stored, replaced, expired.
package final class ClusterChannels: Sendable {
    /// A channel's newest message.
    struct Newest: Sendable {
        let broadcast: Broadcast
        /// Whether this node accepted it.
        let isOwn: Bool
    }

    struct Contents: Sendable {
        var channels: [ChannelID: Versioned<BroadcastChannel>] = [:]
        /// Messages to be stored, also of a channel that this node has not heard of yet.
        var newest: [ChannelID: Newest] = [:]
        /// The last followed entry of each stream.
        var positions: [LogStream: UInt64] = [:]
        /// Broadcasts of this node without an answer of the log, and whether they came from there.
        var awaited: [NotificationID: Bool] = [:]
        /// The reason why a record cannot be read.
        var failure: RecordError?
        weak var sink: (any ChannelSink)?
    }

    let context: ClusterContext
    private let operations = KeyedOperations<ChannelID>()
    private let followers = LogFollowers()
    private let freshness = Freshness()
    let contents = Mutex(Contents())

    init(_ context: ClusterContext) {
        self.context = context
    }

    // MARK: - Following

    /// Loads everything and follows what comes, before any other call; after a failure it may be called again.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    package func start() async throws {
        try await followers.start([.channels, .broadcasts]) { stream in
            context.follower(of: stream, stream == .channels ? freshness : Freshness()) { [self] in
                apply($0, of: stream)
            }
        }
        contents.withLock { contents in
            // Broadcasts of deleted channels wait for the end of their time in the context.log.
            contents.newest = contents.newest.filter { contents.channels[$0.key] != nil }
        }
        try check()
    }

    /// - Throws: ``RecordError`` if there is a record of another version.
    package func check() throws {
        if let error = contents.withLock({ $0.failure }) { throw error }
    }

    /// Ends the following.
    package func close() { followers.close() }

    /// Takes over every channel that was made or deleted before this call.
    package func catchUp(_ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        followers.catchUp([.channels], done)
    }

    /// Whether this node may be behind with the channels.
    var isBehind: Bool { freshness.isOver(at: context.scheduler.now) }

    /// The followers of both streams, once they have begun.
    var activeFollowers: [LogFollower] { followers.all }

    /// Reports all channels to a sink, and everything that comes from then on.
    package func report(to sink: any ChannelSink) {
        contents.withLock { contents in
            contents.sink = sink
            sink.loaded(contents.stored)
        }
    }

    /// All channels in order of creation, with their messages, expired or not.
    package func stored() -> [StoredChannel] { contents.withLock { $0.stored } }

    package func counts() -> [AppNumber: Int] {
        contents.withLock { contents in
            contents.channels.values.reduce(into: [:]) { counts, channel in
                if let app = channel.record?.app { counts[app, default: 0] += 1 }
            }
        }
    }

    // MARK: - Channels

    /// Stores a new channel.
    package func create(_ channel: BroadcastChannel) async throws {
        try await change(channel.id) { $0 = channel }
    }

    /// Deletes a channel and its message; nothing happens if there is none.
    package func delete(_ id: ChannelID, at moment: WallTime) async throws {
        // A node that was cut off hears of it when it is back.
        let time = ClusterLimits.removedRecordTimeToLive
        let newest = contents.withLock { $0.newest[id]?.broadcast }
        let isRemoved = try await change(id, timeToLive: time) { channel in
            defer { channel = nil }
            return channel != nil
        }
        // Its messages cannot be read any more, and expire in the context.log.
        guard isRemoved, let newest else { return }
        context.journal.record([JournalEvent(.discardedChannelDeleted, newest, at: moment)])
    }

    private func change<Value: Sendable>(
        _ id: ChannelID,
        timeToLive: Duration? = nil,
        _ edit: @escaping @Sendable (inout BroadcastChannel?) -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Value, any Error>) in
            let done = context.scheduler.bounded(within: ClusterLimits.changeTime, failing: RecordChangeFailure.unknown)
            {
                continuation.resume(with: $0)
            }
            operations.run(id) { [self] finish in
                let known = contents.withLock { $0.channels[id] } ?? Versioned()
                context.changes.change(.channel(id), in: .channels, from: known, timeToLive: timeToLive, edit) {
                    [self] result in
                    if let changed = try? result.get().0 { contents.withLock { $0.changed(id, changed) } }
                    finish()
                    done(result.map(\.1))
                }
            }
        }
    }

    // MARK: - Broadcasts

    /// Appends a broadcast to the log, which numbers it.
    ///
    /// `done` is called once, from any thread: when the log has it. The sink hears of it as every node does.
    package func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let isThere = contents.withLock { contents in
            guard contents.channels[broadcast.channel] != nil else { return false }
            contents.awaited[broadcast.uniqueID] = false
            return true
        }
        // Deleted since it was accepted.
        guard isThere else { return done(.success(())) }
        let rest = broadcast.storedUntil.map { max(.seconds(1), $0 - moment) + ClusterLimits.timeToLiveSlack }
        let message = LogMessage(
            .broadcasts(broadcast.channel, isStored: rest != nil),
            payload: BroadcastRecord(node: context.own.node, broadcast: broadcast).body,
            timeToLive: rest ?? ClusterLimits.transientTimeToLive
        )
        context.log.append(message, to: .broadcasts) { [self] outcome in
            switch outcome {
            case .stored: settle(broadcast, .success(()), done)
            case .unknown: look(for: broadcast, done)
            case .moved, .refused, .notSent: settle(broadcast, .failure(RecordChangeFailure(outcome)), done)
            }
        }
    }

    /// Waits for a broadcast whose answer was lost: once this node has caught up, it has come, or its outcome is unknown.
    private func look(for broadcast: Broadcast, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let end: @Sendable () -> Void = { [self] in
            settle(broadcast, .failure(RecordChangeFailure.unknown), done)
        }
        followers.catchUp([.broadcasts]) { _ in end() }
        context.scheduler.run(after: ClusterLimits.barrierAttempt, end)
    }

    /// Reports the outcome of a broadcast, once; one that came from the log is stored.
    private func settle(
        _ broadcast: Broadcast,
        _ result: Result<Void, any Error>,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        guard let hasCome = contents.withLock({ $0.awaited.removeValue(forKey: broadcast.uniqueID) }) else { return }
        if !hasCome, case .failure = result { return done(result) }
        if broadcast.storedUntil != nil {
            context.journal.record([JournalEvent(.storedForSubscribers, broadcast, at: context.clock.now())])
        }
        done(.success(()))
    }

    /// Forgets messages that have expired; each has a line in the journal of the node that accepted it.
    package func removeExpired(at moment: WallTime) {
        let expired = contents.withLock { contents in
            let expired = contents.newest.filter { $0.value.broadcast.isExpired(at: moment) }
            for id in expired.keys { contents.newest[id] = nil }
            return expired.values
        }
        let events = expired.filter(\.isOwn).map {
            JournalEvent(.discardedExpiredFromStorage, $0.broadcast, at: moment)
        }
        if !events.isEmpty { context.journal.record(events) }
    }
}
