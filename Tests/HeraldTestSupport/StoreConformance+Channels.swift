import HeraldMailbox
import HeraldModel
import Testing

extension StoreConformance {
    private static func channel(_ number: UInt64, _ scene: StoreScene, app: UInt32 = 1) -> BroadcastChannel {
        BroadcastChannel(id: ChannelID(high: 7, low: number), app: AppNumber(app), storage: .newest, created: scene.now)
    }

    private static func broadcast(
        _ number: UInt64,
        to channel: BroadcastChannel,
        _ scene: StoreScene,
        for duration: Duration = .seconds(3600)
    ) -> Broadcast {
        Broadcast(
            channel: channel.id,
            app: channel.app,
            number: number,
            id: NotificationID(high: 0xC, low: number),
            uniqueID: NotificationID(high: 0xD, low: number),
            received: scene.now,
            storedUntil: scene.now + duration,
            priority: .conserving,
            payload: Array("{\"aps\":{\"n\":\(number)}}".utf8)
        )
    }

    private static func states(_ number: UInt64, _ scene: StoreScene) async throws -> [JournalState] {
        let query = JournalQuery.notification(NotificationID(high: 0xC, low: number))
        return try await scene.store.lines(matching: query, limit: 100).map(\.state)
    }

    static let channelRules: [Rule] = [
        Rule("channels are loaded in the order of their creation, without deleted ones") {
            (scene) async throws in
            let channels = (1...5).map { channel($0, scene, app: UInt32($0)) }
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.deleteChannel(channels[2].id, at: scene.now)
            try await scene.store.deleteChannel(ChannelID(high: 1, low: 1), at: scene.now)
            let left = try await scene.store.loadChannels()
            #expect(left.map(\.channel) == [channels[0], channels[1], channels[3], channels[4]])
            #expect(left.allSatisfy { $0.newest == nil })
        },
        Rule("a channel keeps the message with the greatest number, in any order of arrival") {
            (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            for number: UInt64 in [1, 3, 2] {
                try await scene.store.keepBroadcast(broadcast(number, to: channel, scene), at: scene.now)
            }
            #expect(try await scene.store.loadChannels().map(\.newest) == [broadcast(3, to: channel, scene)])
            #expect(try await states(1, scene) == [.storedForSubscribers, .replaced])
            #expect(try await states(2, scene) == [])
            #expect(try await states(3, scene) == [.storedForSubscribers])
            let line = try await scene.store.lines(
                matching: .notification(NotificationID(high: 0xD, low: 1)),
                limit: 10
            ).last
            #expect(line?.replacement == NotificationID(high: 0xC, low: 3))
        },
        Rule("the messages of two channels are independent") { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.keepBroadcast(broadcast(1, to: channels[0], scene), at: scene.now)
            try await scene.store.keepBroadcast(broadcast(2, to: channels[1], scene), at: scene.now)
            #expect(try await scene.store.loadChannels().map { $0.newest?.number } == [1, 2])
        },
        Rule("deleting a channel deletes its message permanently") { (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            try await scene.store.keepBroadcast(broadcast(1, to: channel, scene), at: scene.now)
            try await scene.store.deleteChannel(channel.id, at: scene.now)
            #expect(try await states(1, scene) == [.storedForSubscribers, .discardedChannelDeleted])
            try await scene.store.keepBroadcast(broadcast(2, to: channel, scene), at: scene.now)
            #expect(try await scene.store.loadChannels() == [])
            #expect(try await states(2, scene) == [])
        },
        Rule("only expired messages are deleted, with a journal event") { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            let short = broadcast(1, to: channels[0], scene, for: .seconds(60))
            try await scene.store.keepBroadcast(short, at: scene.now)
            try await scene.store.keepBroadcast(broadcast(2, to: channels[1], scene), at: scene.now)
            scene.clock.advance(by: .seconds(60))
            try await scene.store.removeExpiredBroadcasts(at: scene.now)
            #expect(try await scene.store.loadChannels().map { $0.newest?.number } == [nil, 2])
            #expect(try await states(1, scene) == [.storedForSubscribers, .discardedExpiredFromStorage])
        },
        Rule("many messages expire at once") { (scene) async throws in
            for number: UInt64 in 1...300 {
                let channel = channel(number, scene)
                try await scene.store.createChannel(channel)
                try await scene.store.keepBroadcast(broadcast(number, to: channel, scene), at: scene.now)
            }
            scene.clock.advance(by: .seconds(3600))
            try await scene.store.removeExpiredBroadcasts(at: scene.now)
            let left = try await scene.store.loadChannels()
            #expect(left.count == 300 && left.allSatisfy { $0.newest == nil })
        },
        Rule("channels and their messages survive a restart", needsDurability: true) { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            let kept = broadcast(9, to: channels[1], scene)
            try await scene.store.keepBroadcast(kept, at: scene.now)
            let before = try await scene.store.loadChannels()
            try await scene.restart()
            #expect(try await scene.store.loadChannels() == before)
            #expect(before.map(\.newest) == [nil, kept])
            // A number that was used is not used again.
            try await scene.store.deleteChannel(channels[1].id, at: scene.now)
            try await scene.store.createChannel(channel(3, scene))
            #expect(try await scene.store.loadChannels().map(\.newest) == [nil, nil])
        },
        Rule("a change that cannot be written fails and is rolled back") { (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            scene.fixture.setFailsWrites(true)
            let other = StoreConformance.channel(2, scene)
            await #expect(throws: (any Error).self) { try await scene.store.createChannel(other) }
            let message = broadcast(1, to: channel, scene)
            await #expect(throws: (any Error).self) { try await scene.store.keepBroadcast(message, at: scene.now) }
            await #expect(throws: (any Error).self) { try await scene.store.deleteChannel(channel.id, at: scene.now) }
            scene.fixture.setFailsWrites(false)
            #expect(try await scene.store.loadChannels() == [StoredChannel(channel: channel, newest: nil)])
        },
    ]
}
