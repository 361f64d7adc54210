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
    func ownLines(_ question: JournalQuestion, limit: Int) async throws -> [JournalEntry] {
        try await JournalReader(store: store, registry: registry, senders: store.senders, node: cluster?.name.text)
            .entries(question, limit: limit)
    }

    /// The lines of all nodes.
    func answer(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        guard let cluster else { return JournalAnswer(try await ownLines(question, limit: limit)) }
        let others = cluster.nodes.all.filter { $0.record.node != cluster.name }
        // The journal of a node that has left is on its disk, and nobody is there to read it.
        let asked = Set(others.filter { $0.state != .left }.map(\.record.node))
        async let answers = cluster.questions.journal(question, limit: limit, of: asked)
        let own = try await ownLines(question, limit: limit)
        let lines = await answers
        return JournalAnswer(
            merging: [own] + lines.sorted { $0.key.text < $1.key.text }.map(\.value),
            missingNodes: others.map(\.record.node).filter { lines[$0] == nil }.map(\.text),
            limit: limit
        )
    }
}
