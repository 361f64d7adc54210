import HeraldCluster
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores

/// The journal of a service: its own, and in a cluster that of every node.
package struct ServiceJournal: Sendable {
    let store: SQLiteStore
    let registry: Registry
    let cluster: ClusterNode?

    /// The lines of this service alone.
    func ownAnswer(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        let node = cluster?.name.text
        let lines = try await JournalReader(store: store, registry: registry, senders: store.senders, node: node)
            .entries(question, limit: limit)
        // Read after the lines: what is deleted in between is not promised.
        return JournalAnswer(lines, completeSince: try await store.journalCompleteSince()?.rfc3339)
    }

    /// The lines of all nodes.
    func answer(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        guard let cluster else { return try await ownAnswer(question, limit: limit) }
        let others = cluster.nodes.all.filter { $0.record.node != cluster.name }
        // The journal of a node that has left is on its disk, and nobody is there to read it.
        let asked = Set(others.filter { $0.state != .left }.map(\.record.node))
        async let answers = cluster.questions.journal(question, limit: limit, of: asked)
        let own = try await ownAnswer(question, limit: limit)
        let found = await answers
        return JournalAnswer(
            merging: [own] + found.sorted { $0.key.text < $1.key.text }.map(\.value),
            missingNodes: others.map(\.record.node).filter { found[$0] == nil }.map(\.text),
            limit: limit
        )
    }
}
