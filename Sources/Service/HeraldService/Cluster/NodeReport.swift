/// The state of a node, as it answers to other nodes and to `herald cluster`.
package struct NodeReport: Codable, Hashable, Sendable {
    package let devicesConnected: Int
    /// The reasons why it does not serve, in words.
    package let problems: [String]
    /// Its own other faults, in words; without those of the cluster, which every node sees.
    package let warnings: [String]
}
