import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldMailbox

/// Keeps what it is given, and is done with it when a test says so.
private final class HeldOutlet: BroadcastOutlet {
    private let held = Mutex<[BroadcastOrder]>([])

    var numbers: [UInt64] { held.withLock { $0.map(\.broadcast.id.low) } }

    func send(_ order: BroadcastOrder) {
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

struct ChannelOfficeTests {
    private let app: App
    private let scene = ChannelScene()
    private let outlet = HeldOutlet()

    init() throws {
        app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        scene.office.deliver(through: outlet)
    }

    private func states(_ number: UInt64) async throws -> [JournalState] {
        let query = JournalQuery.notification(NotificationID(high: 0xE, low: number))
        return try await scene.store.lines(matching: query, limit: 100).map(\.state)
    }

    private func create(_ number: UInt64, in scene: ChannelScene) async -> ReceiptOutcome {
        let receipt = scene.receipts.receipt()
        switch scene.office.create(ChannelScene.id(number), for: app, storage: .newest, receipt: receipt) {
        case .accepted: return .accepted
        case .refused(let rejection, _): return .refused(rejection)
        case .pending: return await scene.receipts.outcome(of: receipt)
        }
    }

    @Test func `channels are made, listed in their order, and deleted; all of it is in the store`() async throws {
        try await scene.run {
            for number: UInt64 in 1...3 { #expect(await create(number, in: scene) == .accepted) }
            let names = [1, 2, 3].map { ChannelScene.id($0).base64 }
            let listing = String(decoding: scene.office.listing(of: app), as: UTF8.self)
            #expect(listing == "{\"channels\":[\"\(names[0])\",\"\(names[1])\",\"\(names[2])\"]}")
            let sandbox = App(topic: app.topic, environment: .sandbox)
            #expect(scene.office.listing(of: sandbox) == Array("{\"channels\":[]}".utf8))
            #expect(scene.office.channel(ChannelScene.id(1), of: sandbox) == nil)
            let receipt = scene.receipts.receipt()
            #expect(scene.office.delete(ChannelScene.id(2), of: sandbox, receipt: receipt).isRefused)
            #expect(scene.office.delete(ChannelScene.id(2), of: app, receipt: receipt) == .pending)
            #expect(await scene.receipts.outcome(of: receipt) == .accepted)
            let stored = try await scene.store.loadChannels().map(\.channel.id)
            #expect(stored == [ChannelScene.id(1), ChannelScene.id(3)])
            let again = try await scene.restarted()
            #expect(again.listing(of: app) == Array("{\"channels\":[\"\(names[0])\",\"\(names[2])\"]}".utf8))
        }
    }

    @Test func `an app has a limit of channels, and those that failed or were deleted do not count`() async throws {
        var configuration = ChannelOfficeConfiguration()
        configuration.channelsPerApp = 2
        let scene = ChannelScene(configuration: configuration)
        try await scene.run {
            scene.store.setFailsWrites(true)
            #expect(await create(9, in: scene) == .refused(.serviceUnavailable))
            scene.store.setFailsWrites(false)
            #expect(await create(1, in: scene) == .accepted)
            #expect(await create(2, in: scene) == .accepted)
            #expect(await create(3, in: scene) == .refused(.cannotCreateChannelConfig))
            let receipt = scene.receipts.receipt()
            _ = scene.office.delete(ChannelScene.id(1), of: app, receipt: receipt)
            #expect(await scene.receipts.outcome(of: receipt) == .accepted)
            #expect(await create(3, in: scene) == .accepted)
        }
    }

    @Test func `a service has a limit of channels in all`() async throws {
        var configuration = ChannelOfficeConfiguration()
        configuration.channelsInAll = 1
        let scene = ChannelScene(configuration: configuration)
        try await scene.run {
            #expect(await create(1, in: scene) == .accepted)
            #expect(await create(2, in: scene) == .refused(.cannotCreateChannelConfig))
        }
    }

    @Test func `what is stored is kept for later subscribers, what is not replaces nothing`() async throws {
        try await scene.load([(1, app, .newest)])
        try await scene.run {
            #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
            #expect(await scene.publish(scene.post(2, to: 1, of: app)) == .accepted)
            #expect(scene.office.newest(ChannelScene.id(1), of: app)?.id.low == 1)
            #expect(await scene.publish(scene.post(3, to: 1, of: app, for: .seconds(60))) == .accepted)
            #expect(scene.office.newest(ChannelScene.id(1), of: app)?.id.low == 3)
            #expect(outlet.numbers == [1, 2, 3])
            outlet.finishAll(handed: 7)
            #expect(try await states(1) == [.received, .storedForSubscribers, .replaced, .sentToSubscribers])
            #expect(try await states(2) == [.received, .sentToSubscribers])
            let query = JournalQuery.notification(NotificationID(high: 0xE, low: 2))
            #expect(try await scene.store.lines(matching: query, limit: 9).last?.subscribers == 7)
            let again = try await scene.restarted()
            #expect(again.newest(ChannelScene.id(1), of: app)?.payload == Array("{\"aps\":{\"n\":3}}".utf8))
            scene.clock.advance(by: .seconds(60))
            #expect(again.newest(ChannelScene.id(1), of: app) == nil)
            #expect(scene.office.newest(ChannelScene.id(1), of: app) == nil)
            await scene.office.sweep()
            #expect(try await states(3).last == .discardedExpiredFromStorage)
            #expect(try await scene.store.loadChannels().map(\.newest) == [nil])
        }
    }

    @Test func `a channel whose policy is to store nothing stores nothing`() async throws {
        try await scene.load([(1, app, .none)])
        #expect(await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60))) == .accepted)
        #expect(scene.office.newest(ChannelScene.id(1), of: app) == nil)
        #expect(try await scene.store.loadChannels().map(\.newest) == [nil])
    }

    @Test func `a message that cannot be stored is refused, and the one before it is what late subscribers get`()
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
            #expect(scene.office.newest(ChannelScene.id(1), of: app)?.id.low == 1)
            scene.store.setAccepting(false)
            #expect(await scene.publish(scene.post(3, to: 1, of: app)) == .refused(.serviceUnavailable))
        }
    }

    @Test func `more broadcasts under way than the limit are refused, until one is done`() async throws {
        var configuration = ChannelOfficeConfiguration()
        configuration.broadcastsUnderWay = 2
        let scene = ChannelScene(configuration: configuration)
        scene.office.deliver(through: outlet)
        try await scene.load([(1, app, .none)])
        #expect(await scene.publish(scene.post(1, to: 1, of: app)) == .accepted)
        #expect(await scene.publish(scene.post(2, to: 1, of: app)) == .accepted)
        #expect(await scene.publish(scene.post(3, to: 1, of: app)) == .refused(.tooManyRequests))
        outlet.finishAll(handed: 0)
        #expect(await scene.publish(scene.post(4, to: 1, of: app)) == .accepted)
    }

    @Test func `broadcasts that wait for the store count as memory, and past its limit are refused`() async throws {
        let post = scene.post(1, to: 1, of: app, for: .seconds(60))
        let load = LetterLoad(limit: 2 * (512 + post.payload.count))
        let scene = ChannelScene(load: load)
        scene.office.deliver(through: outlet)
        try await scene.load([(1, app, .newest)])
        let receipts = (1...2).map { _ in scene.receipts.receipt() }
        for receipt in receipts { #expect(scene.office.publish(post, receipt: receipt) == .pending) }
        #expect(await scene.publish(post) == .refused(.serviceUnavailable))
        try await scene.run {
            for receipt in receipts { #expect(await scene.receipts.outcome(of: receipt) == .accepted) }
            while load.current > 0 { await Task.yield() }
            #expect(await scene.publish(post) == .accepted)
        }
    }

    @Test func `numbers grow, across restarts too, and when the clock goes back`() async throws {
        try await scene.load([(1, app, .newest)])
        try await scene.run {
            _ = await scene.publish(scene.post(1, to: 1, of: app, for: .seconds(60)))
            let first = try #require(scene.office.newest(ChannelScene.id(1), of: app)?.number)
            let again = try await scene.restarted()
            scene.clock.advance(by: .seconds(-600))
            let receipt = scene.receipts.receipt()
            _ = again.publish(scene.post(2, to: 1, of: app, for: .seconds(60)), receipt: receipt)
            let second = try #require(again.newest(ChannelScene.id(1), of: app)?.number)
            #expect(second > first)
        }
    }

    @Test func `a channel of another app is not there`() async throws {
        let other = App(topic: try #require(Topic("com.example.other")), environment: .production)
        try await scene.load([(1, app, .newest)])
        #expect(scene.office.feed(ChannelScene.id(1), of: other) == nil)
        #expect(await scene.publish(scene.post(1, to: 1, of: other)) == .refused(.channelNotRegistered))
        #expect(scene.office.feed(ChannelScene.id(1), of: app)?.published == 0)
    }

    @Test func `what no app could read is on record, and nowhere else`() async throws {
        try await scene.load([(1, app, .newest)])
        let post = scene.post(1, to: 1, of: app, for: .seconds(60))
        let receipt = scene.receipts.receipt()
        #expect(scene.office.discard(post, as: .discardedUndeliverable, receipt: receipt) == .pending)
        #expect(await scene.receipts.outcome(of: receipt) == .accepted)
        #expect(try await states(1) == [.received, .discardedUndeliverable])
        #expect(outlet.numbers == [] && scene.office.newest(ChannelScene.id(1), of: app) == nil)
    }
}

extension PostDecision {
    fileprivate var isRefused: Bool { if case .refused = self { true } else { false } }
}
