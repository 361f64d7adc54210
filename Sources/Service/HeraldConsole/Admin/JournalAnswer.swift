/// The journal's answer to a query, of one service or of all nodes of a cluster.
package struct JournalAnswer: Hashable, Sendable {
    /// The field of an HTTP answer that names the nodes whose lines are missing, with commas between them.
    package static let missingNodesField = "herald-missing-nodes"

    /// Oldest first.
    package let lines: [JournalEntry]
    /// The names of the nodes whose lines are missing, since they did not answer; always empty outside a cluster.
    package let missingNodes: [String]

    package init(_ lines: [JournalEntry], missingNodes: [String] = []) {
        self.lines = lines
        self.missingNodes = missingNodes
    }

    /// Merges the lines of several nodes by their times.
    /// - Parameters:
    ///   - nodes: The lines of each node, oldest first.
    ///   - missingNodes: The nodes whose lines are missing.
    ///   - limit: The number of lines that are kept, the newest ones.
    package init(merging nodes: [[JournalEntry]], missingNodes: some Sequence<String>, limit: Int) {
        // The times have one form, so their texts have their order. Lines of one moment stay as they are.
        let lines = nodes.joined().enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
        self.init(lines.suffix(limit).map(\.element), missingNodes: missingNodes.sorted())
    }
}
