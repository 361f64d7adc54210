import GRDB
package import HeraldMailbox
package import HeraldModel

extension SQLiteStore: ChannelStore {
    package func loadChannels() async throws -> [StoredChannel] {
        try await readers.read { try ChannelTable.load($0) }
    }

    package func createChannel(_ channel: BroadcastChannel) async throws {
        try await change { database, _ in try ChannelTable.create(channel, database) }
    }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        try await change { database, batch in
            guard let stored = try ChannelTable.delete(id, database) else { return }
            batch.record(JournalEvent(.discardedChannelDeleted, stored, at: moment))
        }
    }

    package func keepBroadcast(_ broadcast: Broadcast, at moment: WallTime) async throws {
        guard let storedUntil = broadcast.storedUntil else { return }
        try await change { database, batch in
            switch try ChannelTable.keep(broadcast, until: storedUntil, database) {
            case .superseded:
                return
            case .kept(let older):
                batch.record(JournalEvent(.storedForSubscribers, broadcast, at: moment))
                guard let older else { return }
                batch.record(JournalEvent(.replaced, older, at: moment, replacement: broadcast.id))
            }
        }
    }

    package func removeExpiredBroadcasts(at moment: WallTime) async throws {
        let slice = configuration.upkeepSlice
        var count: Int
        repeat {
            count = try await change { database, batch in
                let expired = try ChannelTable.removeExpired(at: moment, limit: slice, database)
                for broadcast in expired {
                    batch.record(JournalEvent(.discardedExpiredFromStorage, broadcast, at: moment))
                }
                return expired.count
            }
        } while count == slice
    }
}
