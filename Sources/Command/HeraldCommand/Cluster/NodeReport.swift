/// The state of a node, as it answers to other nodes and to `herald cluster`.
struct NodeReport: Codable, Hashable, Sendable {
    let devicesConnected: Int
    /// The reasons why it does not serve, in words.
    let problems: [String]
    /// Its own other faults, in words; without those of the cluster, which every node sees.
    let warnings: [String]
}
