/// The journal's answer to a query, of one service or of all nodes of a cluster.
package struct JournalAnswer: Codable, Hashable, Sendable {
    /// The field of an HTTP answer that names the nodes whose lines are missing, with commas between them.
    package static let missingNodesField = "herald-missing-nodes"
    /// The field of an HTTP answer with ``completeSince``.
    package static let completeSinceField = "herald-complete-since"

    /// Oldest first.
    package let lines: [JournalEntry]
    /// The time since which no journal has deleted a line, in RFC 3339; nil if none has ever deleted one.
    package let completeSince: String?
    /// The names of the nodes whose lines are missing, since they did not answer; always empty outside a cluster.
    package let missingNodes: [String]

    package init(_ lines: [JournalEntry], completeSince: String? = nil, missingNodes: [String] = []) {
        self.lines = lines
        self.completeSince = completeSince
        self.missingNodes = missingNodes
    }

    /// Merges the answers of several nodes by the times of their lines, and keeps the newest `limit` lines.
    package init(merging nodes: [JournalAnswer], missingNodes: some Sequence<String>, limit: Int) {
        // The times have one form, so their texts have their order. Lines of one moment stay as they are.
        let lines = nodes.map(\.lines).joined().enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
        self.init(
            lines.suffix(limit).map(\.element),
            completeSince: nodes.compactMap(\.completeSince).max(),
            missingNodes: missingNodes.sorted()
        )
    }
}
