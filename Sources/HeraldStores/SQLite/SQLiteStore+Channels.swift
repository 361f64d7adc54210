import GRDB
package import HeraldMailbox
package import HeraldModel

extension SQLiteStore: ChannelStore {
    package func loadChannels() async throws -> [StoredChannel] {
        try await readers.read { [damage] in try ChannelTable.load($0, damage) }
    }

    package func createChannel(_ channel: BroadcastChannel) async throws {
        try await change { database, _ in try ChannelTable.create(channel, database) }
    }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        try await change { [damage] database, batch in
            guard let stored = try ChannelTable.delete(id, database, damage) else { return }
            batch.record(JournalEvent(.discardedChannelDeleted, stored, at: moment))
        }
    }

    package func keepBroadcast(_ broadcast: Broadcast, at moment: WallTime) async throws {
        guard let storedUntil = broadcast.storedUntil else { return }
        try await change { [damage] database, batch in
            switch try ChannelTable.store(broadcast, until: storedUntil, database, damage) {
            case .superseded:
                return
            case .stored(let older):
                batch.record(JournalEvent(.storedForSubscribers, broadcast, at: moment))
                guard let older else { return }
                batch.record(JournalEvent(.replaced, older, at: moment, detail: .replacement(broadcast.id)))
            }
        }
    }

    package func removeExpiredBroadcasts(at moment: WallTime) async throws {
        let slice = configuration.maintenanceSlice
        var count: Int
        repeat {
            count = try await change { [damage] database, batch in
                let expired = try ChannelTable.removeExpired(at: moment, limit: slice, database, damage)
                for broadcast in expired.valid {
                    batch.record(JournalEvent(.discardedExpiredFromStorage, broadcast, at: moment))
                }
                return expired.count
            }
        } while count == slice
    }
}
