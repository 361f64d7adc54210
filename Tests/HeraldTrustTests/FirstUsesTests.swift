import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldTrust

final class FirstUsesTests: Sendable {
    private let trust: TestTrust
    private let service: TrustService
    private let events = Mutex<[String]>([])

    init() async throws {
        trust = try await TestTrust()
        service = try await trust.service()
    }

    private func use(_ team: String, _ topic: String = "com.example.app", isNamed: Bool = false) throws -> TopicUse {
        TopicUse(topic: try #require(Topic(topic)), team: team, isNamed: isNamed)
    }

    /// Reserves a topic.
    /// - Returns: nil if the topic cannot be reserved.
    private func reserve(_ team: String, _ topic: String = "com.example.app") throws -> FirstUses.Reservation? {
        guard case .reserved(let reservation) = service.firstUses.reserve(try use(team, topic)) else { return nil }
        return reservation
    }

    /// Settles an accepted request, and returns when it may be answered.
    @discardableResult
    private func accept(_ reservation: FirstUses.Reservation) async -> FirstUses.Outcome {
        await withCheckedContinuation { answer in
            service.firstUses.claim(reservation) { answer.resume(returning: $0) }
        }
    }

    private func isUndecided(_ team: String) throws -> Bool {
        if case .undecided = service.firstUses.reserve(try use(team)) { true } else { false }
    }

    private func owner(_ topic: String = "com.example.app") throws -> String? {
        service.providerTokens.credentials.claims.owner(of: try #require(Topic(topic)))
    }

    /// Claims while `body` runs.
    private func run(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { [self] in
                await service.claimFirstUses(clock: trust.clock) { event in
                    let text =
                        switch event {
                        case .claimed(let use): "\(use.team) claimed"
                        case .lost(let use, let owner): "\(use.team) lost to \(owner ?? "nobody")"
                        case .failed(let use, _): "\(use.team) failed"
                        case .overLimit(let use): "\(use.team) over the limit"
                        }
                    events.withLock { $0.append(text) }
                }
            }
            try await body()
            group.cancelAll()
        }
    }

    @Test func `of two teams the first owns the topic, before its request is answered and after a restart`()
        async throws
    {
        try await run {
            let first = try #require(try reserve("A"))
            #expect(try reserve("B") == nil)
            #expect(try owner() == nil)
            #expect(await accept(first) == .decided)
            #expect(try owner() == "A")
            guard case .owned = service.firstUses.reserve(try use("A")),
                case .taken = service.firstUses.reserve(try use("B"))
            else {
                Issue.record("the topic is not the first team's")
                return
            }
        }
        let restarted = try await TrustService(folder: try await trust.restart())
        #expect(restarted.providerTokens.credentials.claims.owner(of: try use("A").topic) == "A")
        #expect(events.withLock { $0 } == ["A claimed"])
    }

    @Test func `requests of one team share a claim`() async throws {
        try await run {
            let all = try (0..<3).map { _ in try #require(try reserve("A")) }
            await accept(all[0])
            await accept(all[1])
            service.firstUses.cancel(all[2])
            #expect(try owner() == "A")
        }
        #expect(events.withLock { $0 } == ["A claimed"])
    }

    @Test func `refused requests claim nothing, and the topic is free once none is left`() throws {
        let both = [try #require(try reserve("A")), try #require(try reserve("A"))]
        service.firstUses.cancel(both[0])
        #expect(try reserve("B") == nil)
        service.firstUses.cancel(both[1])
        #expect(try reserve("B") != nil)
    }

    @Test func `claims and reservations of a team are limited, those of others go on, and the log says it once`()
        async throws
    {
        let names = (1..<TopicClaims.maximumUses).map { "com.example.a\($0)" }
        let claims = try names.map { TopicClaim(try use("A", $0).topic, team: "A", origin: .use, since: trust.now) }
        try await trust.store.claim(claims, takesOver: false)
        _ = await service.reload()
        try await run {
            let last = try #require(try reserve("A"))
            for _ in 0..<2 {
                guard case .overLimit = service.firstUses.reserve(try use("A", "com.example.more")) else {
                    Issue.record("there is no limit")
                    return
                }
            }
            await accept(try #require(try reserve("B", "com.example.more")))
            service.firstUses.cancel(last)
            #expect(try reserve("A", "com.example.other") != nil)
        }
        #expect(events.withLock { $0 } == ["A over the limit", "B claimed"])
    }

    @Test func `a ledger that fails leaves the request undecided, and the next one claims`() async throws {
        try await run {
            let first = try #require(try reserve("A"))
            trust.store.fail(with: TrustError(.unwritable, "the disk is full"))
            #expect(await accept(first) == .undecided)
            #expect(try owner() == nil)
            trust.store.fail(with: nil)
            await accept(try #require(try reserve("B")))
            #expect(try owner() == "B")
        }
        #expect(events.withLock { $0 } == ["A failed", "B claimed"])
    }

    @Test func `a claim of another process in the meantime counts`() async throws {
        try await run {
            let first = try #require(try reserve("A"))
            let claim = TopicClaim(try use("B").topic, team: "B", origin: .operator, since: trust.now)
            try await trust.store.claim([claim], takesOver: false)
            #expect(await accept(first) == .decided)
            #expect(try owner() == "B")
        }
        #expect(events.withLock { $0 } == ["A lost to B"])
    }

    @Test(.timeLimit(.minutes(10)))
    func `while the ledger is too slow over a claim, all requests for the topic are undecided`() async throws {
        try await run {
            let (first, second) = (try #require(try reserve("A")), try #require(try reserve("A")))
            await trust.store.claims.setSize(2)
            let outcomes = Mutex<[FirstUses.Outcome]>([])
            service.firstUses.claim(first) { outcome in outcomes.withLock { $0.append(outcome) } }
            // The ledger has begun.
            await trust.store.claims.come()
            service.firstUses.expireClaims()
            #expect(outcomes.withLock { $0 } == [])
            #expect(try reserve("B") == nil)
            #expect(try !isUndecided("B"), "another team is refused as long as the claim may be in time")
            service.firstUses.expireClaims()
            #expect(outcomes.withLock { $0 } == [.undecided])
            #expect(await accept(second) == .undecided)
            #expect(try isUndecided("A") && isUndecided("B"))
            #expect(try owner() == nil)
            await trust.store.claims.come()
            await trust.store.claims.setSize(1)
            while try isUndecided("B") { await Task.yield() }
            #expect(try owner() == "A", "its write was under way, and the next request finds it")
        }
        #expect(events.withLock { $0 } == ["A claimed"])
    }

    @Test(.timeLimit(.minutes(10)))
    func `a claim that was too late to begin claims nothing`() async throws {
        let outcomes = Mutex<[FirstUses.Outcome]>([])
        service.firstUses.claim(try #require(try reserve("A"))) { outcome in outcomes.withLock { $0.append(outcome) } }
        for _ in 1...2 { service.firstUses.expireClaims() }
        #expect(outcomes.withLock { $0 } == [.undecided])
        try await run {
            while try isUndecided("B") { await Task.yield() }
            #expect(await accept(try #require(try reserve("B"))) == .decided)
            #expect(try owner() == "B")
        }
        #expect(events.withLock { $0 } == ["B claimed"])
    }

    @Test func `nobody waits for a claim once the service stops`() async throws {
        try await run {}
        #expect(await accept(try #require(try reserve("A"))) == .undecided)
        #expect(try owner() == nil)
    }
}
