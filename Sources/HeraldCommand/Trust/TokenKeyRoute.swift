import Foundation
import HeraldConsole
import HeraldModel
import HeraldTrust

/// `/v1/control/token-keys`: the use of each key of device tokens in the running service.
struct TokenKeyRoute: Sendable {
    static let name = "token-keys"
    static let path = "/v1/control/token-keys"

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
    }

    let seal: TokenSeal
    let started: WallTime

    var route: ControlRoute {
        ControlRoute(TokenKeyRoute.name) { _ in
            let keys = seal.usage.map { Usage.Key(id: $0.key, opened: $0.opened) }
            return Array(try JSONEncoder().encode(Usage(since: started.rfc3339, keys: keys)))
        }
    }
}
