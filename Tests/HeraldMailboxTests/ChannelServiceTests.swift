import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldMailbox

/// Keeps what it is given, and is done with it when a test says so.
private final class HeldOutlet: BroadcastOutlet {
    private let held = Mutex<[BroadcastSend]>([])

    var numbers: [UInt64] { held.withLock { $0.map(\.broadcast.id.low) } }

    func send(_ order: BroadcastSend) {
        held.withLock { $0.append(order) }
    }

    func finishAll(handed: Int) {
        let orders = held.withLock { held in
            defer { held = [] }
            return held
        }
        for order in orders { order.finish(handed: handed) }
    }
}

struct ChannelServiceTests {
    private let app: App
    private let scene = ChannelScene()
    private let outlet = HeldOutlet()

    init() throws {
        app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        scene.service.deliver(through: outlet)
    }

    private func states(_ number: UInt64) async throws -> [JournalState] {
        let query = JournalQuery.notification(NotificationID(high: 0xE, low: number))
        return try await scene.store.lines(matching: query, limit: 100).map(\.state)
    }

    private func create(_ number: UInt64, in scene: ChannelScene) async -> CompletionOutcome {
        let completion = scene.completions.completion()
        switch scene.service.create(ChannelScene.id(number), for: app, storage: .newest, completion: completion) {
        case .accepted: return .accepted
        case .refused(let refusalReason, _): return .refused(refusalReason)
        case .pending: return await scene.completions.outcome(of: completion)
        }
    }

    @Test func `a message that looks expired after a jump of the clock is kept until its time is certain`() async throws
    {
        try await scene.run {
            #expect(await create(1, in: scene) == .accepted)
            #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
            let before = scene.clock.now()
            scene.clock.setCertain(before)
            scene.clock.advance(by: .seconds(86_400))
            await scene.service.sweep()
            let again = try await scene.restarted()
            for moment in [scene.clock.now(), before] {
                scene.clock.set(moment)
                for service in [scene.service, again] {
                    #expect(service.newest(ChannelScene.id(1), of: app)?.id.low == 1)
                }
            }
            scene.clock.setCertain(nil)
            scene.clock.advance(by: .seconds(86_400))
            await scene.service.sweep()
            #expect(try await states(1).last == .discardedExpiredFromStorage)
        }
    }

    @Test func `channels are created, listed in order and deleted, in the store too`() async throws {
        try await scene.run {
            for number: UInt64 in 1...3 { #expect(await create(number, in: scene) == .accepted) }
            let names = [1, 2, 3].map { ChannelScene.id($0).base64 }
            let listing = String(decoding: scene.service.listing(of: app), as: UTF8.self)
            #expect(listing == "{\"channels\":[\"\(names[0])\",\"\(names[1])\",\"\(names[2])\"]}")
            let sandbox = App(topic: app.topic, environment: .sandbox)
            #expect(scene.service.listing(of: sandbox) == Array("{\"channels\":[]}".utf8))
            #expect(scene.service.channel(ChannelScene.id(1), of: sandbox) == nil)
            let completion = scene.completions.completion()
            #expect(scene.service.delete(ChannelScene.id(2), of: sandbox, completion: completion).isRefused)
            #expect(scene.service.delete(ChannelScene.id(2), of: app, completion: completion) == .pending)
            #expect(await scene.completions.outcome(of: completion) == .accepted)
            let stored = try await scene.store.loadChannels().map(\.channel.id)
            #expect(stored == [ChannelScene.id(1), ChannelScene.id(3)])
            let again = try await scene.restarted()
            #expect(again.listing(of: app) == Array("{\"channels\":[\"\(names[0])\",\"\(names[2])\"]}".utf8))
        }
    }

    @Test func `failed and deleted channels do not count against an app's limit`() async throws {
        var configuration = ChannelServiceConfiguration()
        configuration.channelsPerApp = 2
        let scene = ChannelScene(configuration: configuration)
        try await scene.run {
            scene.store.setFailsWrites(true)
            #expect(await create(9, in: scene) == .refused(.serviceUnavailable))
            scene.store.setFailsWrites(false)
            #expect(await create(1, in: scene) == .accepted)
            #expect(await create(2, in: scene) == .accepted)
            #expect(await create(3, in: scene) == .refused(.cannotCreateChannelConfig))
            let completion = scene.completions.completion()
            _ = scene.service.delete(ChannelScene.id(1), of: app, completion: completion)
            #expect(await scene.completions.outcome(of: completion) == .accepted)
            #expect(await create(3, in: scene) == .accepted)
        }
    }

    @Test func `a service has a limit of channels in all`() async throws {
        var configuration = ChannelServiceConfiguration()
        configuration.channelsInAll = 1
        let scene = ChannelScene(configuration: configuration)
        try await scene.run {
            #expect(await create(1, in: scene) == .accepted)
            #expect(await create(2, in: scene) == .refused(.cannotCreateChannelConfig))
        }
    }

    @Test func `a team that brought too many app names gets no channel of a new app`() async throws {
        try await scene.run {
            scene.apps.refuses.withLock { $0 = true }
            #expect(await create(1, in: scene) == .refused(.cannotCreateChannelConfig))
            scene.apps.refuses.withLock { $0 = false }
            #expect(await create(1, in: scene) == .accepted)
        }
    }

    @Test func `only a stored message replaces the one for later subscribers`() async throws {
        try await scene.load([(1, app, .newest)])
        try await scene.run {
            #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
            #expect(await scene.publish(scene.post(2, to: 1, of: app)) == .accepted)
            #expect(scene.service.newest(ChannelScene.id(1), of: app)?.id.low == 1)
            #expect(await scene.publish(scene.post(3, to: 1, of: app, for: .seconds(60))) == .accepted)
            #expect(scene.service.newest(ChannelScene.id(1), of: app)?.id.low == 3)
            #expect(outlet.numbers == [1, 2, 3])
            outlet.finishAll(handed: 7)
            #expect(try await states(1) == [.received, .storedForSubscribers, .replaced, .sentToSubscribers])
            #expect(try await states(2) == [.received, .sentToSubscribers])
            let query = JournalQuery.notification(NotificationID(high: 0xE, low: 2))
            #expect(try await scene.store.lines(matching: query, limit: 9).last?.subscriberCount == 7)
            let again = try await scene.restarted()
            #expect(again.newest(ChannelScene.id(1), of: app)?.payload == Array("{\"aps\":{\"n\":3}}".utf8))
            scene.clock.advance(by: .seconds(60))
            #expect(again.newest(ChannelScene.id(1), of: app) == nil)
            #expect(scene.service.newest(ChannelScene.id(1), of: app) == nil)
            await scene.service.sweep()
            #expect(try await states(3).last == .discardedExpiredFromStorage)
            #expect(try await scene.store.loadChannels().map(\.newest) == [nil])
        }
    }

    @Test func `a channel without storage stores nothing`() async throws {
        try await scene.load([(1, app, .none)])
        #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
        #expect(scene.service.newest(ChannelScene.id(1), of: app) == nil)
        #expect(try await scene.store.loadChannels().map(\.newest) == [nil])
    }

    @Test func `a message that cannot be stored is refused, and later subscribers get the one before`()
        async throws
    {
        try await scene.load([(1, app, .newest)])
        try await scene.run {
            #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
            scene.store.failsKeeping.withLock { $0 = true }
            #expect(
                await scene.publish(scene.post(2, to: 1, of: app, for: .seconds(60)))
                    == .refused(.serviceUnavailable)
            )
            #expect(scene.service.newest(ChannelScene.id(1), of: app)?.id.low == 1)
            scene.store.setAccepting(false)
            #expect(await scene.publish(scene.post(3, to: 1, of: app)) == .refused(.serviceUnavailable))
        }
    }

    @Test func `broadcasts past the limit are refused until one has finished`() async throws {
        var configuration = ChannelServiceConfiguration()
        configuration.broadcastsUnderWay = 2
        let scene = ChannelScene(configuration: configuration)
        scene.service.deliver(through: outlet)
        try await scene.load([(1, app, .none)])
        #expect(await scene.publish(scene.post(1, to: 1, of: app)) == .accepted)
        #expect(await scene.publish(scene.post(2, to: 1, of: app)) == .accepted)
        #expect(await scene.publish(scene.post(3, to: 1, of: app)) == .refused(.tooManyRequests))
        outlet.finishAll(handed: 0)
        #expect(await scene.publish(scene.post(4, to: 1, of: app)) == .accepted)
    }

    @Test func `broadcasts that wait for the store count against the memory limit`() async throws {
        let post = scene.post(1, to: 1, of: app, for: .seconds(60))
        let memory = EnvelopeMemory(limit: 2 * (512 + post.payload.count))
        let scene = ChannelScene(memory: memory)
        scene.service.deliver(through: outlet)
        try await scene.load([(1, app, .newest)])
        scene.store.holdBroadcasts()
        let completions = (1...2).map { _ in scene.completions.completion() }
        for completion in completions { #expect(scene.service.publish(post, completion: completion) == .pending) }
        #expect(await scene.publish(post) == .refused(.serviceUnavailable))
        scene.store.releaseBroadcasts()
        try await scene.run {
            for completion in completions { #expect(await scene.completions.outcome(of: completion) == .accepted) }
            while memory.current > 0 { await Task.yield() }
            #expect(await scene.publish(post) == .accepted)
        }
    }

    @Test func `numbers rise across restarts and when the clock goes back`() async throws {
        try await scene.load([(1, app, .newest)])
        try await scene.run {
            _ = await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60)))
            let first = try #require(scene.service.newest(ChannelScene.id(1), of: app)?.number)
            let again = try await scene.restarted()
            scene.clock.advance(by: .seconds(-600))
            let completion = scene.completions.completion()
            _ = again.publish(scene.post(2, to: 1, of: app, for: .seconds(60)), completion: completion)
            let second = try #require(again.newest(ChannelScene.id(1), of: app)?.number)
            #expect(second > first)
        }
    }

    @Test func `a channel of another app is not found`() async throws {
        let other = App(topic: try #require(Topic("com.example.other")), environment: .production)
        try await scene.load([(1, app, .newest)])
        #expect(scene.service.feed(ChannelScene.id(1), of: other) == nil)
        #expect(await scene.publish(scene.post(1, to: 1, of: other)) == .refused(.channelNotRegistered))
        #expect(scene.service.feed(ChannelScene.id(1), of: app)?.published == 0)
    }

    @Test func `an unreadable broadcast is only recorded`() async throws {
        try await scene.load([(1, app, .newest)])
        let post = scene.post(1, to: 1, of: app, for: .seconds(60))
        let completion = scene.completions.completion()
        #expect(scene.service.discard(post, as: .discardedUndeliverable, completion: completion) == .pending)
        #expect(await scene.completions.outcome(of: completion) == .accepted)
        #expect(try await states(1) == [.received, .discardedUndeliverable])
        #expect(outlet.numbers == [] && scene.service.newest(ChannelScene.id(1), of: app) == nil)
    }

    // MARK: - Other nodes

    private func stored(_ number: UInt64) -> StoredChannel {
        let id = ChannelScene.id(number)
        let channel = BroadcastChannel(id: id, app: AppNumber(1), storage: .newest, created: scene.clock.now())
        return StoredChannel(channel: channel, newest: nil)
    }

    private func foreign(_ number: UInt64, to channel: UInt64) -> Broadcast {
        Broadcast(
            channel: ChannelScene.id(channel),
            app: AppNumber(1),
            number: number,
            id: NotificationID(high: 0xE, low: number),
            uniqueID: NotificationID(high: 0xF, low: number),
            received: scene.clock.now(),
            storedUntil: scene.clock.now() + .seconds(60),
            priority: .immediate,
            payload: Array("{}".utf8)
        )
    }

    @Test func `a channel of another node is there as soon as its app is known, with what came meanwhile`() async throws
    {
        scene.service.created(stored(1))
        scene.service.received(foreign(5, to: 1), isDurable: true)
        scene.service.received(foreign(6, to: 2), isDurable: true)
        #expect(scene.service.feed(ChannelScene.id(1), of: app) == nil && outlet.numbers == [])
        _ = try await scene.apps.withNumber(of: app, for: nil) { $0 }
        #expect(scene.service.newest(ChannelScene.id(1), of: app)?.number == 5)
        scene.service.received(foreign(7, to: 1), isDurable: true)
        #expect(outlet.numbers == [7])
        #expect(scene.service.newest(ChannelScene.id(1), of: app)?.number == 7)
        scene.service.deleted(ChannelScene.id(1))
        #expect(scene.service.feed(ChannelScene.id(1), of: app) == nil)
        #expect(scene.service.listing(of: app) == Array("{\"channels\":[]}".utf8))
    }

    @Test func `of what other nodes send faster than event loops take it, the newest of a channel waits`() async throws
    {
        var configuration = ChannelServiceConfiguration()
        configuration.broadcastsUnderWay = 1
        let scene = ChannelScene(configuration: configuration)
        scene.service.deliver(through: outlet)
        try await scene.load([(1, app, .newest)])
        for number: UInt64 in 1...5 { scene.service.received(foreign(number, to: 1), isDurable: true) }
        #expect(outlet.numbers == [1, 2])
        #expect(scene.service.newest(ChannelScene.id(1), of: app)?.number == 5)
        #expect(await scene.publish(scene.post(9, to: 1, of: app)) == .refused(.tooManyRequests))
        outlet.finishAll(handed: 1)
        #expect(outlet.numbers == [5])
        outlet.finishAll(handed: 1)
        #expect(await scene.publish(scene.post(9, to: 1, of: app)) == .accepted)
        for (number, count) in [1: 1, 2: 1, 3: 0, 4: 0, 5: 1] as [UInt64: UInt64] {
            let query = JournalQuery.notification(NotificationID(high: 0xE, low: number))
            let lines = try await scene.store.lines(matching: query, limit: 9)
            #expect(lines.map(\.state) == [.sentToSubscribers] && lines.map(\.subscriberCount) == [count])
        }
    }
}

extension PostDecision {
    fileprivate var isRefused: Bool { if case .refused = self { true } else { false } }
}
