import HeraldCluster
import HeraldCourier
import HeraldTrust
import Logging
import ServiceLifecycle

/// Keeps trust in common with the other nodes while the service runs.
struct TrustSyncService: Service {
    let sync: TrustSync
    let watch: TrustWatch
    let seal: TokenSeal
    let courier: Courier
    /// The newest token key that each live node opens.
    let liveTokenKeys: @Sendable () -> [NodeName: UInt32]
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await sync.run {
                useTokenKey()
            } onChange: {
                // `watch` logs a failure, and tries again every second.
                try await watch.reload()
            }
        }
        // The other nodes get the last changes now, unless the servers are away: then at the next start.
        if sync.problem == nil { try? await sync.shareAll() }
    }

    /// Seals under the newest key that every live node opens.
    private func useTokenKey() {
        sync.opens(seal.newestOpenKey)
        let former = seal.newestKey
        seal.sealUpTo(TokenKeyUse(newest: seal.newestOpenKey, live: liveTokenKeys()).usable)
        guard seal.newestKey != former else { return }
        logger.notice(
            "every live node has the token key; it seals device tokens now",
            metadata: ["key": "\(seal.newestKey)"]
        )
        courier.renewTokens()
    }
}
