import HeraldModel
import Testing

@testable import HeraldGateway
@testable import HeraldTrust

@Suite
struct `a connection's provider token` {
    private let start = WallTime(seconds: 1_772_366_400)

    private func identity(
        _ key: String = "KEY0000001",
        team: String = "TEAM000001",
        topics: TopicScope = .wholeTeam,
        environments: Set<PushEnvironment> = [.production]
    ) -> ProviderTokenIdentity {
        ProviderTokenIdentity(keyID: key, team: team, topics: topics, environments: environments, issued: start)
    }

    @Test func `may change once at once, and then every twenty minutes`() {
        var binding = ProviderTokenBinding()
        #expect(!binding.isBound)
        #expect(binding.change(to: identity(), now: start) == nil)
        #expect(binding.isBound)
        #expect(binding.change(to: identity(), now: start) == nil)
        let early = start + .seconds(20 * 60 - 1)
        #expect(binding.change(to: identity(), now: early)?.refusalReason == .tooManyProviderTokenUpdates)
        #expect(binding.change(to: identity(), now: start + .seconds(20 * 60)) == nil)
        #expect(
            binding.change(to: identity(), now: start + .seconds(20 * 60))?.refusalReason
                == .tooManyProviderTokenUpdates
        )
    }

    @Test func `is of one team`() {
        var binding = ProviderTokenBinding()
        _ = binding.change(to: identity(), now: start)
        let other = identity("KEY0000002", team: "TEAM000002")
        #expect(binding.change(to: other, now: start)?.refusalReason == .invalidProviderToken)
    }

    @Test func `is of one key, or of one with the same scope`() {
        var binding = ProviderTokenBinding()
        let topics = TopicScope.topics([Topic("com.example.app")].compactMap { $0 }.reduce(into: []) { $0.insert($1) })
        _ = binding.change(to: identity(topics: topics), now: start)
        let unrelated = [
            identity("KEY0000002"), identity("KEY0000002", topics: topics, environments: [.production, .sandbox]),
        ]
        for key in unrelated { #expect(binding.change(to: key, now: start)?.refusalReason == .unrelatedKeyIDInToken) }
        #expect(binding.change(to: identity("KEY0000002", topics: topics), now: start) == nil)
    }

    @Test func `that is refused leaves the one before in force`() {
        var binding = ProviderTokenBinding()
        _ = binding.change(to: identity(), now: start)
        _ = binding.change(to: identity(team: "TEAM000002"), now: start)
        #expect(binding.change(to: identity(), now: start) == nil)
    }

    @Test func `may change when the clock was set back`() {
        var binding = ProviderTokenBinding()
        _ = binding.change(to: identity(), now: start)
        _ = binding.change(to: identity(), now: start)
        #expect(binding.change(to: identity(), now: start - .seconds(86_400)) == nil)
    }
}
