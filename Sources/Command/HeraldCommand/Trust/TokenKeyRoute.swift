import HeraldCluster
import HeraldConsole
import HeraldModel
import HeraldTrust

/// The use of each key of device tokens in the running service.
struct TokenKeyRoute: Sendable {
    /// The service's answer.
    struct Usage: Hashable, Codable, Sendable {
        struct Key: Hashable, Codable, Sendable {
            let id: UInt32
            let opened: UInt64
        }

        /// When it began to count.
        let since: String
        /// The keys that open, the newest first.
        let keys: [Key]
        /// The number of the key that seals new tokens.
        let sealing: UInt32
        /// The live nodes of the cluster that lack the newest key, which therefore does not seal yet.
        let lacking: [String]
    }

    let seal: TokenSeal
    /// The newest key that each live node of the cluster opens.
    let live: @Sendable () -> [NodeName: UInt32]
    let started: WallTime

    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.tokenKeys) { _ in
            let keys = seal.usage.map { Usage.Key(id: $0.key, opened: $0.opened) }
            let use = TokenKeyUse(newest: seal.newestOpenKey, live: live())
            return Usage(
                since: started.rfc3339,
                keys: keys,
                sealing: seal.newestKey,
                lacking: use.lacking.map(\.text)
            )
        }
    }
}
