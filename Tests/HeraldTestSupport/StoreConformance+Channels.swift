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
        isStored: Bool = true,
        for duration: Duration = .seconds(3600)
    ) -> Broadcast {
        Broadcast(
            channel: channel.id,
            app: channel.app,
            number: 0,
            id: NotificationID(high: 0xC, low: number),
            uniqueID: NotificationID(high: 0xD, low: number),
            received: scene.now,
            storedUntil: isStored ? scene.now + duration : nil,
            priority: .conserving,
            payload: Array("{\"aps\":{\"n\":\(number)}}".utf8)
        )
    }

    /// Publishes, and waits until the store has reported it.
    private static func publish(_ broadcast: Broadcast, _ scene: StoreScene) async throws {
        try await scene.store.publish(broadcast, at: scene.now)
        await scene.channels.wait { $0.received.contains { $0.uniqueID == broadcast.uniqueID } }
    }

    /// The newest message of each channel.
    private static func newest(_ scene: StoreScene) async throws -> [UInt64?] {
        try await scene.store.loadChannels().map { $0.newest?.id.low }
    }

    private static func states(_ number: UInt64, _ scene: StoreScene) async throws -> [JournalState] {
        let query = JournalQuery.notification(NotificationID(high: 0xC, low: number))
        return try await scene.store.lines(matching: query, limit: 100).map(\.state)
    }

    static let channelRules: [Rule] = [
        Rule("channels are loaded in the order of their creation, without deleted ones") {
            (scene) async throws in
            let channels = (1...5).map { channel($0, scene, app: UInt32($0)) }
            try await scene.store.createChannel(channels[0])
            try await scene.store.follow(scene.channels)
            #expect(scene.channels.heard.channels == [channels[0].id])
            for one in channels[1...] { try await scene.store.createChannel(one) }
            try await scene.store.deleteChannel(channels[2].id, at: scene.now)
            try await scene.store.deleteChannel(ChannelID(high: 1, low: 1), at: scene.now)
            let left = try await scene.store.loadChannels()
            #expect(left.map(\.channel) == [channels[0], channels[1], channels[3], channels[4]])
            #expect(left.allSatisfy { $0.newest == nil })
            #expect(scene.channels.heard.channels == left.map(\.channel.id))
        },
        Rule("broadcasts are reported in the order of their numbers, and the newest is kept") {
            (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            try await scene.store.follow(scene.channels)
            for number: UInt64 in 1...4 {
                try await publish(broadcast(number, to: channel, scene, isStored: number != 3), scene)
            }
            let heard = scene.channels.heard
            #expect(heard.ids == [1, 2, 3, 4])
            #expect(zip(heard.received, heard.received.dropFirst()).allSatisfy { $0.number < $1.number })
            #expect(try await newest(scene) == [4])
            #expect(try await states(1, scene) == [.storedForSubscribers, .replaced])
            #expect(try await states(2, scene) == [.storedForSubscribers, .replaced])
            #expect(try await states(3, scene) == [])
            #expect(try await states(4, scene) == [.storedForSubscribers])
            let line = try await scene.store.lines(
                matching: .notification(NotificationID(high: 0xD, low: 1)),
                limit: 10
            ).last
            #expect(line?.replacement == NotificationID(high: 0xC, low: 2))
        },
        Rule("broadcasts that are published at once all come, each once") { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.follow(scene.channels)
            try await withThrowingTaskGroup { group in
                for number: UInt64 in 1...60 {
                    let one = broadcast(number, to: channels[Int(number % 2)], scene)
                    group.addTask { try await scene.store.publish(one, at: scene.now) }
                }
                try await group.waitForAll()
            }
            let heard = await scene.channels.wait { $0.received.count >= 60 }
            #expect(Set(heard.ids) == Set(1...60) && heard.received.count == 60)
            #expect(zip(heard.received, heard.received.dropFirst()).allSatisfy { $0.number < $1.number })
            for stored in try await scene.store.loadChannels() {
                #expect(stored.newest == heard.received.last { $0.channel == stored.channel.id })
            }
        },
        Rule("the messages of two channels are independent") { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.follow(scene.channels)
            try await publish(broadcast(1, to: channels[0], scene), scene)
            try await publish(broadcast(2, to: channels[1], scene), scene)
            #expect(try await newest(scene) == [1, 2])
        },
        Rule("deleting a channel deletes its message permanently") { (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            try await scene.store.follow(scene.channels)
            try await publish(broadcast(1, to: channel, scene), scene)
            try await scene.store.deleteChannel(channel.id, at: scene.now)
            #expect(try await states(1, scene) == [.storedForSubscribers, .discardedChannelDeleted])
            try await scene.store.publish(broadcast(2, to: channel, scene), at: scene.now)
            #expect(try await scene.store.loadChannels() == [])
            #expect(try await states(2, scene) == [])
        },
        Rule("only expired messages are deleted, with a journal event") { (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.follow(scene.channels)
            try await publish(broadcast(1, to: channels[0], scene, for: .seconds(60)), scene)
            try await publish(broadcast(2, to: channels[1], scene), scene)
            scene.clock.advance(by: .seconds(60))
            try await scene.store.removeExpiredBroadcasts(at: scene.now)
            #expect(try await newest(scene) == [nil, 2])
            #expect(try await states(1, scene) == [.storedForSubscribers, .discardedExpiredFromStorage])
        },
        Rule("many messages expire at once") { (scene) async throws in
            try await scene.store.follow(scene.channels)
            for number: UInt64 in 1...300 {
                let channel = channel(number, scene)
                try await scene.store.createChannel(channel)
                try await scene.store.publish(broadcast(number, to: channel, scene), at: scene.now)
            }
            await scene.channels.wait { $0.received.count == 300 }
            scene.clock.advance(by: .seconds(3600))
            try await scene.store.removeExpiredBroadcasts(at: scene.now)
            let left = try await scene.store.loadChannels()
            #expect(left.count == 300 && left.allSatisfy { $0.newest == nil })
        },
        Rule("channels and their messages survive a restart, and numbers rise", needsDurability: true) {
            (scene) async throws in
            let channels = [channel(1, scene), channel(2, scene)]
            for one in channels { try await scene.store.createChannel(one) }
            try await scene.store.follow(scene.channels)
            try await publish(broadcast(9, to: channels[1], scene), scene)
            let before = try await scene.store.loadChannels()
            try await scene.restart()
            #expect(try await scene.store.loadChannels() == before)
            #expect(before.map { $0.newest?.id.low } == [nil, 9])
            try await scene.store.follow(scene.channels)
            #expect(scene.channels.heard.received == [], "an old message is none that comes now")
            try await publish(broadcast(10, to: channels[0], scene), scene)
            #expect(scene.channels.heard.received[0].number > before[1].newest?.number ?? .max)
            // A number that was used is not used again.
            try await scene.store.deleteChannel(channels[1].id, at: scene.now)
            try await scene.store.createChannel(channel(3, scene))
            #expect(try await newest(scene) == [10, nil])
        },
        Rule("a change that cannot be written fails and is rolled back") { (scene) async throws in
            let channel = channel(1, scene)
            try await scene.store.createChannel(channel)
            try await scene.store.follow(scene.channels)
            scene.fixture.setFailsWrites(true)
            let other = StoreConformance.channel(2, scene)
            await #expect(throws: (any Error).self) { try await scene.store.createChannel(other) }
            let message = broadcast(1, to: channel, scene)
            await #expect(throws: (any Error).self) { try await scene.store.publish(message, at: scene.now) }
            await #expect(throws: (any Error).self) { try await scene.store.deleteChannel(channel.id, at: scene.now) }
            scene.fixture.setFailsWrites(false)
            #expect(try await scene.store.loadChannels() == [StoredChannel(channel: channel, newest: nil)])
            #expect(scene.channels.heard.channels == [channel.id])
            #expect(scene.channels.heard.received.count == scene.channels.heard.failed.count)
        },
    ]
}
