package import HeraldMailbox
package import HeraldModel
import Synchronization

/// The channels' part of the store in memory.
extension MemoryStore {
    package func loadChannels() async throws -> [StoredChannel] {
        contents.withLock { contents in
            contents.channels.map { StoredChannel(channel: $0, newest: contents.broadcasts[$0.id]) }
        }
    }

    package func createChannel(_ channel: BroadcastChannel) async throws {
        try write { $0.channels.append(channel) }
    }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        flushNow()
        try write { contents in
            contents.channels.removeAll { $0.id == id }
            guard let stored = contents.broadcasts.removeValue(forKey: id) else { return }
            contents.journal.append(JournalEvent(.discardedChannelDeleted, stored, at: moment))
        }
    }

    package func keepBroadcast(_ broadcast: Broadcast, at moment: WallTime) async throws {
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
