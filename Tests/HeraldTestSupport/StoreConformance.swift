import HeraldMailbox
import HeraldModel
import Testing

/// The rules of every store engine: a test target runs each rule on each of its engines.
package enum StoreConformance {
    /// One rule.
    package struct Rule: Sendable, CustomTestStringConvertible {
        package let name: String
        let needsDurability: Bool
        /// Whether it is about sweeps, or about lines that a put writes for another notification.
        let needsTransactions: Bool
        let body: @Sendable (StoreScene) async throws -> Void

        init(
            _ name: String,
            needsDurability: Bool = false,
            needsTransactions: Bool = false,
            _ body: @escaping @Sendable (StoreScene) async throws -> Void
        ) {
            self.name = name
            self.needsDurability = needsDurability
            self.needsTransactions = needsTransactions
            self.body = body
        }

        package var testDescription: String { name }
    }

    /// The rules of the mailbox and the journal, for an engine whose registry is tested apart.
    package static let mailboxRules = storageRules + mailboxTroubleRules

    package static let rules =
        storageRules + journalRules + registryRules + channelRules + mailboxTroubleRules + registryTroubleRules

    /// Runs a rule on a new store of an engine.
    package static func check(_ rule: Rule, on engine: StoreEngine) async throws {
        guard engine.isDurable || !rule.needsDurability else { return }
        guard engine.journal == .transactional && !engine.expiresByItself || !rule.needsTransactions else { return }
        let clock = ManualClock()
        let scene = StoreScene(
            try await engine.open(clock),
            clock: clock,
            journal: engine.journal,
            expiresByItself: engine.expiresByItself
        )
        do {
            try await rule.body(scene)
        } catch {
            await scene.fixture.close()
            throw error
        }
        await scene.fixture.close()
    }
}
