import HeraldCluster

/// Decides which token key seals, so that no node refuses another one's token.
struct TokenKeyUse: Hashable, Sendable {
    /// The newest key that this node opens.
    let newest: UInt32
    /// The newest key that each other live node opens, by its record; none while this node is alone.
    let live: [NodeName: UInt32]

    /// The newest key that every live node opens.
    var usable: UInt32 { min(newest, live.values.min() ?? newest) }

    /// The live nodes that lack the newest key, by their names.
    var lacking: [NodeName] {
        live.filter { $0.value < newest }.keys.sorted { $0.text < $1.text }
    }
}
