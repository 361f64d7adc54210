package import HeraldCluster
import HeraldConsole
package import HeraldModel
package import HeraldTrust

/// The use of each key of device tokens in the running service.
package struct TokenKeyRoute: Sendable {
    /// The service's answer.
    package struct Usage: Hashable, Codable, Sendable {
        package struct Key: Hashable, Codable, Sendable {
            package let id: UInt32
            package let opened: UInt64
        }

        /// When it began to count.
        package let since: String
        /// The keys that open, the newest first.
        package let keys: [Key]
        /// The number of the key that seals new tokens.
        package let sealing: UInt32
        /// The live nodes of the cluster that lack the newest key, which therefore does not seal yet.
        package let lacking: [String]
    }

    package let seal: TokenSeal
    /// The newest key that each live node of the cluster opens.
    package let live: @Sendable () -> [NodeName: UInt32]
    package let started: WallTime

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
