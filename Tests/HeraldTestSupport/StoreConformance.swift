import HeraldMailbox
import HeraldModel
import Testing

/// The rules of every store engine: a test target runs each rule on each of its engines.
package enum StoreConformance {
    /// One rule.
    package struct Rule: Sendable, CustomTestStringConvertible {
        package let name: String
        let needsDurability: Bool
        let body: @Sendable (StoreScene) async throws -> Void

        init(
            _ name: String,
            needsDurability: Bool = false,
            _ body: @escaping @Sendable (StoreScene) async throws -> Void
        ) {
            self.name = name
            self.needsDurability = needsDurability
            self.body = body
        }

        package var testDescription: String { name }
    }

    package static let rules = mailboxRules + journalRules + registryRules + channelRules + troubleRules

    /// Runs a rule on a new store of an engine.
    package static func check(_ rule: Rule, on engine: StoreEngine) async throws {
        guard engine.isDurable || !rule.needsDurability else { return }
        let clock = ManualClock()
        let scene = StoreScene(try await engine.open(clock), clock: clock)
        do {
            try await rule.body(scene)
        } catch {
            await scene.fixture.close()
            throw error
        }
        await scene.fixture.close()
    }
}
