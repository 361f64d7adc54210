import GRDB
package import HeraldMailbox
package import HeraldModel

extension SQLiteStore: ChannelStore {
    package func follow(_ sink: any ChannelSink) async throws {
        reports.channels.begin(sink, with: try await loadChannels())
    }

    package func loadChannels() async throws -> [StoredChannel] {
        try await readers.read { [damage] in try ChannelTable.load($0, damage) }
    }

    package func createChannel(_ channel: BroadcastChannel) async throws {
        try await change { database, _ in try ChannelTable.create(channel, database) }
        reports.channels.created(channel)
    }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        try await change { [damage] database, batch in
            guard let stored = try ChannelTable.delete(id, database, damage) else { return }
            batch.record(JournalEvent(.discardedChannelDeleted, stored, at: moment))
        }
        reports.channels.deleted(id)
    }

    package func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let numbered = reports.channels.publish(broadcast, at: moment)
        guard numbered.storedUntil != nil else { return done(.success(())) }
        keepBroadcast(numbered, at: moment) { [channelReports = reports.channels] result in
            if case .success = result {
                channelReports.settled(numbered, isStored: true)
            } else {
                channelReports.settled(numbered, isStored: false)
            }
            done(result)
        }
    }

    /// Stores a message as its channel's newest, unless the channel has a newer one already, or is gone.
    ///
    /// The journal lines `stored` and, for the message before, `replaced` become durable with it.
    func keepBroadcast(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        guard let storedUntil = broadcast.storedUntil else { return done(.success(())) }
        change { [damage] database, batch in
            switch try ChannelTable.store(broadcast, until: storedUntil, database, damage) {
            case .superseded:
                return
            case .stored(let older):
                batch.record(JournalEvent(.storedForSubscribers, broadcast, at: moment))
                guard let older else { return }
                batch.record(JournalEvent(.replaced, older, at: moment, detail: .replacement(broadcast.id)))
            }
        } _: { result in
            done(result)
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
