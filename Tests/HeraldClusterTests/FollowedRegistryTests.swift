import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldSimulation

/// The registries of two nodes on one log.
@Suite struct FollowedRegistryTests {
    private let log = MemoryLog()
    private let clock = ManualClock()
    private let a: RegistryNode
    private let b: RegistryNode
    private let chat: App
    private let phone: DeviceID

    init() async throws {
        a = try await RegistryNode("a", log, clock)
        b = try await RegistryNode("b", log, clock)
        chat = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        phone = try #require(DeviceID("phone"))
    }

    private func register(at node: RegistryNode) async throws -> Registration {
        let device = try await node.registry.arrive(phone).number
        return try #require(await node.registry.register([chat], on: device)[chat]).get()
    }

    private func unregister(_ slot: Slot, at node: RegistryNode) async throws -> Bool {
        try #require(await node.registry.unregister([slot])[slot]).get()
    }

    @Test func `a device, an app and a registration of one node are known at the other`() async throws {
        let made = try await register(at: a)
        #expect(b.postOffice.registration(made.slot) == made)
        #expect(b.registry.number(of: chat) == made.slot.app && b.registry.app(made.slot.app) == chat)
        #expect(b.registry.number(of: phone) == made.slot.device && b.registry.device(made.slot.device) == phone)
        #expect(b.registry.isRegistered(chat))
        #expect(try await register(at: b) == made)
    }

    @Test func `an app that is removed at one node is sent nothing at the other, where its device is connected`()
        async throws
    {
        let made = try await register(at: a)
        let link = WitnessLink()
        let (device, fence) = (made.slot.device, try await b.registry.arrive(phone).fence)
        b.postOffice.attach(device, link: link, isSavingPower: false, fence: fence)
        b.postOffice.open([AppSubscription(made.slot.app, qualityOfService: 1)], on: device, fence: fence)
        #expect(b.post(to: made) == .pending)
        #expect(await link.deliveries.first { _ in true }?.envelope.notification.slot == made.slot)
        #expect(try await unregister(made.slot, at: a))
        #expect(b.post(to: made) == .refused(.unregistered, since: clock.now()))
    }

    @Test func `a device has room for an app as soon as another node has removed one`() async throws {
        var limits = RegistryConfiguration()
        limits.appsPerDevice = 1
        let b = try await RegistryNode("tight", log, clock, limits: limits)
        let made = try await register(at: a)
        let mail = App(topic: try #require(Topic("com.example.mail")), environment: .production)
        log.holdBack(true)
        #expect(try await unregister(made.slot, at: a))
        #expect(b.postOffice.registration(made.slot) == made)
        async let later = b.registry.register([mail], on: made.slot.device)
        log.holdBack(false)
        #expect(try #require(await later[mail]).get().isLive)
    }

    @Test func `a node that has stood still reads before it accepts`() async throws {
        let (time, answers) = (SimTime(), WitnessCompletions())
        let still = try await RegistryNode("still", log, clock, scheduler: time)
        let made = try await register(at: a)
        log.holdBack(true)
        #expect(try await unregister(made.slot, at: a))
        // As long as a node may be behind anyway, it says what it knows.
        #expect(!still.store.isBehind(.registrations(of: made.slot.device)))
        time.pass(ClusterLimits.followerFreshness + .milliseconds(1))
        #expect(still.store.isBehind(.registrations(of: made.slot.device)))
        #expect(still.post(to: made, Completion(handler: answers, number: 1)) == .pending)
        log.holdBack(false)
        #expect(await answers.next() == .refused(.unregistered, since: clock.now()))
        #expect(!still.store.isBehind(.registrations(of: made.slot.device)))
    }

    @Test func `a node that is behind removes what another node has registered`() async throws {
        log.holdBack(true)
        let device = try await a.registry.arrive(phone).number
        let made = try #require(await a.registry.register([chat], on: device)[chat]).get()
        #expect(b.postOffice.registration(made.slot) == nil)
        async let removed = unregister(made.slot, at: b)
        log.holdBack(false)
        #expect(try await removed)
        #expect(a.postOffice.registration(made.slot)?.isLive == false)
    }

    @Test func `a node hears of its own changes late, and they undo nothing`() async throws {
        log.holdBack(true)
        let first = try await register(at: a)
        #expect(a.postOffice.registration(first.slot) == first)
        #expect(try await unregister(first.slot, at: a))
        let ended = a.postOffice.registration(first.slot)
        #expect(ended?.isLive == false)
        log.holdBack(false)
        #expect(a.postOffice.registration(first.slot) == ended)
        #expect(b.postOffice.registration(first.slot) == ended)
    }

    @Test func `nodes that change one registration agree on it`() async throws {
        let slot = try await register(at: a).slot
        for round in 0..<10 {
            log.holdBack(round % 2 == 0)
            async let removed = a.registry.unregister([slot])
            async let disabled: Void = b.registry.setEnabled(round % 3 == 0, for: slot)
            log.holdBack(false)
            _ = try await (removed, disabled)
            _ = try await register(at: round % 2 == 0 ? b : a)
            try await a.registry.catchUp()
            try await b.registry.catchUp()
            let known = try #require(a.postOffice.registration(slot))
            #expect(known == b.postOffice.registration(slot))
            #expect(known.generation == UInt32(round + 1) && known.isLive)
        }
    }

    @Test func `an app that is forgotten at one node gets another number at the other`() async throws {
        let first = try await register(at: a).slot
        #expect(try await unregister(first, at: a))
        #expect(try await b.registry.forget(chat)?.isUnused == true)
        #expect(a.registry.number(of: chat) == nil && a.postOffice.registration(first) == nil)
        let second = try await register(at: a).slot
        #expect(second.app != first.app)
        #expect(b.registry.number(of: chat) == second.app && b.registry.app(first.app) == nil)
    }

    @Test func `an app that another node has registered meanwhile is not forgotten`() async throws {
        let first = try await register(at: a).slot
        #expect(try await unregister(first, at: a))
        log.holdBack(true)
        let made = try #require(await a.registry.register([chat], on: first.device)[chat]).get()
        async let usage = b.registry.forget(chat)
        log.holdBack(false)
        #expect(try await usage?.devices == 1)
        #expect(b.postOffice.registration(first) == made)
    }

    @Test func `a dead token is listed again after another node has cleared the list`() async throws {
        let made = try await register(at: a)
        #expect(try await unregister(made.slot, at: a))
        for _ in 1...2 {
            #expect(b.post(to: made) == .refused(.unregistered, since: clock.now()))
            let listed = try await a.registry.feedback(for: made.slot.app, limit: 10)
            #expect(listed.map(\.slot) == [made.slot])
            try await a.registry.clearFeedback(listed)
            #expect(try await b.registry.feedback(for: made.slot.app, limit: 10).isEmpty)
        }
    }

    // MARK: - Refusals

    @Test func `a token that was made at one node is good at the other at once`() async throws {
        log.holdBack(true)
        let made = try await register(at: a)
        let completions = WitnessCompletions()
        #expect(b.post(to: made, Completion(handler: completions, number: 1)) == .pending)
        #expect(b.postOffice.registration(made.slot) == nil)
        log.holdBack(false)
        #expect(await completions.next() == .accepted)
    }

    @Test func `an app that is switched on again at one node is served by the other at once`() async throws {
        let made = try await register(at: a)
        try await a.registry.setEnabled(false, for: made.slot)
        #expect(b.postOffice.registration(made.slot)?.isEnabled == false)
        log.holdBack(true)
        try await a.registry.setEnabled(true, for: made.slot)
        let completions = WitnessCompletions()
        #expect(b.post(to: made, Completion(handler: completions, number: 1)) == .pending)
        log.holdBack(false)
        #expect(await completions.next() == .accepted)
        let slot = RegisteredSlot(made.slot, generation: made.generation)
        #expect(try await b.store.waiting(in: [slot]).count == 1)
    }

    @Test func `a notification for an app that is switched off is discarded`() async throws {
        let made = try await register(at: a)
        try await a.registry.setEnabled(false, for: made.slot)
        let completions = WitnessCompletions()
        #expect(b.post(to: made, Completion(handler: completions, number: 1)) == .pending)
        #expect(await completions.next() == .accepted)
        let slot = RegisteredSlot(made.slot, generation: made.generation)
        #expect(try await b.store.waiting(in: [slot]).isEmpty)
    }

    @Test func `a token of a newer generation than the known one is good at once`() async throws {
        let first = try await register(at: a)
        #expect(try await unregister(first.slot, at: a))
        try await b.registry.catchUp()
        log.holdBack(true)
        let second = try await register(at: a)
        let completions = WitnessCompletions()
        #expect(b.post(to: first) == .refused(.unregistered, since: clock.now()))
        #expect(b.post(to: second, Completion(handler: completions, number: 1)) == .pending)
        log.holdBack(false)
        #expect(await completions.next() == .accepted)
    }

    @Test func `a token that no node knows is refused when that is certain, and then at once for a while`()
        async throws
    {
        let made = try await register(at: a)
        let slot = Slot(device: made.slot.device, app: AppNumber(99))
        let stranger = Registration(slot: slot, generation: 0, isLive: true, registered: clock.now())
        let completions = WitnessCompletions()
        log.holdBack(true)
        #expect(b.post(to: stranger, Completion(handler: completions, number: 1)) == .pending)
        log.holdBack(false)
        #expect(await completions.next() == .refused(.badDeviceToken))
        #expect(b.post(to: stranger) == .refused(.badDeviceToken, since: nil))
        clock.advance(by: .seconds(3))
        #expect(b.post(to: stranger, Completion(handler: completions, number: 2)) == .pending)
        #expect(await completions.next() == .refused(.badDeviceToken))
    }

    @Test func `without the log, a token that is not known is neither good nor bad`() async throws {
        let made = try await register(at: a)
        let slot = Slot(device: made.slot.device, app: AppNumber(99))
        let stranger = Registration(slot: slot, generation: 0, isLive: true, registered: clock.now())
        let completions = WitnessCompletions()
        log.setAway(true)
        #expect(b.post(to: stranger, Completion(handler: completions, number: 1)) == .pending)
        #expect(await completions.next() == .refused(.serviceUnavailable))
    }

    @Test func `at most 1,024 refusals are confirmed at a time`() async throws {
        let made = try await register(at: a)
        log.holdBack(true)
        func post(_ app: UInt32) -> PostDecision {
            let slot = Slot(device: made.slot.device, app: AppNumber(1000 + app))
            return b.post(to: Registration(slot: slot, generation: 0, isLive: true, registered: clock.now()))
        }
        #expect((0..<1024).allSatisfy { post($0) == .pending })
        #expect(post(1024) == .refused(.serviceUnavailable, since: nil))
        log.holdBack(false)
        #expect(post(1025) == .pending)
    }
}
