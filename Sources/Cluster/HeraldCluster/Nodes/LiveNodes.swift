/// The nodes of a cluster that live, as far as this node knows.
package protocol LiveNodes: Sendable {
    /// The names of all nodes that live, without this one.
    var others: Set<NodeName> { get }

    /// Whether the process that made a claim may still hold its connections.
    func mayLive(_ holder: ClaimRecord) -> Bool
}

/// The nodes of a node that serves its cluster alone.
package struct NodeAlone: LiveNodes {
    package var others: Set<NodeName> { [] }

    package func mayLive(_ holder: ClaimRecord) -> Bool { false }
}
