import HeraldCluster
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores

/// Numbers of journal lines of a service, in a cluster of all nodes.
struct ServiceTallies: JournalCounting {
    let journal: ServiceJournal
    let clock: ServiceClock
    /// Shared with the searches, because they read from the same connections.
    let turns: SearchTurns

    var now: WallTime { clock.now() }

    func tallies(_ question: TallyQuestion) async throws -> TallyAnswer {
        let others = journal.cluster?.nodes.all.filter { $0.record.node != journal.cluster?.name } ?? []
        // The counts of a node that has left are on its disk, and nobody is there to read them.
        let asked = Set(others.filter { $0.state != .left }.map(\.record.node))
        async let answers = journal.cluster?.questions.tallies(question, of: asked) ?? [:]
        let own = try await ownTallies(question)
        let found = await answers
        return TallyAnswer(
            question,
            nodes: [own] + found.values,
            missingNodes: others.map(\.record.node).filter { found[$0] == nil }.map(\.text).sorted()
        )
    }

    /// The numbers of this service alone, by hour.
    func ownTallies(_ question: TallyQuestion) async throws -> [Int64: [String: Int]] {
        guard let hours = question.hours else { return [:] }
        let registry = journal.registry
        let apps = question.topic.map { Set(Topic($0).map { registry.apps(of: $0) } ?? []) }
        return try await turns.run { [journal] in
            try await journal.store.tallies(in: hours) { key in
                switch key.app {
                case .app(let app):
                    if let apps, !apps.contains(app) { return nil }
                    if let environment = question.environment, registry.app(app)?.environment != environment {
                        return nil
                    }
                case .none(let environment):
                    guard apps == nil, environment == question.environment ?? environment else { return nil }
                }
                return question.name(of: key)
            }
        }
    }
}
