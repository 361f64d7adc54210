package import HeraldMailbox
package import HeraldModel
import Synchronization

/// The channels' part of the store in memory.
extension MemoryStore {
    package func follow(_ sink: any ChannelSink) async throws {
        channelReports.begin(sink, with: try await loadChannels())
    }

    package func loadChannels() async throws -> [StoredChannel] {
        contents.withLock { contents in
            contents.channels.map { StoredChannel(channel: $0, newest: contents.broadcasts[$0.id]) }
        }
    }

    package func createChannel(_ channel: BroadcastChannel) async throws {
        try write { $0.channels.append(channel) }
        channelReports.created(channel)
    }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        flushNow()
        try write { contents in
            contents.channels.removeAll { $0.id == id }
            guard let stored = contents.broadcasts.removeValue(forKey: id) else { return }
            contents.journal.append(JournalEvent(.discardedChannelDeleted, stored, at: moment))
        }
        channelReports.deleted(id)
    }

    package func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let numbered = channelReports.publish(broadcast, at: moment)
        guard numbered.storedUntil != nil else { return done(.success(())) }
        let keep: @Sendable () -> Void = { [self] in
            let result = Result<Void, any Error> { try self.keep(numbered, at: moment) }
            if case .success = result {
                channelReports.settled(numbered, isStored: true)
            } else {
                channelReports.settled(numbered, isStored: false)
            }
            done(result)
        }
        let isHeld = heldBroadcasts.withLock { held in
            held?.append(keep)
            return held != nil
        }
        if !isHeld { keep() }
    }

    /// Holds back the writes of broadcasts, until ``releaseBroadcasts()``.
    package func holdBroadcasts() { heldBroadcasts.withLock { $0 = [] } }

    package func releaseBroadcasts() {
        let held = heldBroadcasts.withLock { $0.take() }
        for keep in held ?? [] { keep() }
    }

    private func keep(_ broadcast: Broadcast, at moment: WallTime) throws {
        flushNow()
        guard !failsKeeping.withLock({ $0 }) else { throw WriteFailure() }
        try write { contents in
            let older = contents.broadcasts[broadcast.channel]
            guard contents.channels.contains(where: { $0.id == broadcast.channel }),
                older.map({ $0.number < broadcast.number }) ?? true
            else { return }
            contents.broadcasts[broadcast.channel] = broadcast
            contents.journal.append(JournalEvent(.storedForSubscribers, broadcast, at: moment))
            guard let older else { return }
            contents.journal.append(JournalEvent(.replaced, older, at: moment, detail: .replacement(broadcast.id)))
        }
    }

    package func removeExpiredBroadcasts(at moment: WallTime) async throws {
        try write { contents in
            for (id, broadcast) in contents.broadcasts where broadcast.isExpired(at: moment) {
                contents.broadcasts[id] = nil
                contents.journal.append(JournalEvent(.discardedExpiredFromStorage, broadcast, at: moment))
            }
        }
    }
}
