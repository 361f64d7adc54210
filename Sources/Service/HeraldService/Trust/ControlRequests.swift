import HTTPTypes
import HeraldCluster
package import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldTrust

// Requests of the control socket only.

extension AdminAPI {
    package static let registration = AdminOperation<TokenReport.Query, TokenReport.RegistrationState>(
        .post,
        "control/registration",
        role: .admin,
        .reads,
        says: "The registration of a device token."
    )
    package static let tokenKeys = AdminOperation<NoContent, TokenKeyUsage>(
        .post,
        "control/token-keys",
        role: .admin,
        .reads,
        says: "The use of each key of device tokens."
    )
    package static let trustSharing = AdminOperation<NoContent, TrustSharing>(
        .post,
        "control/trust-sharing",
        role: .admin,
        .reads,
        says: "Whether the other nodes of a cluster can learn what was changed at this one."
    )

    package static let control = [registration.row, tokenKeys.row, trustSharing.row]
}

/// The use of each key of device tokens in the running service.
package struct TokenKeyUsage: Hashable, Codable, Sendable {
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

/// Whether the other nodes of a cluster can learn what was changed at this one.
package struct TrustSharing: Hashable, Codable, Sendable {
    /// The reason why they cannot; nil if they can, or if there are none.
    package let problem: String?
}

extension ServiceAdministration {
    /// The time for the NATS servers: a change is usually there after 0.3 s.
    private static let patience = Duration.seconds(2)

    func registerControl(_ api: inout AdminWork) {
        api.on(AdminAPI.registration) { call in try registration(call.body) }
        api.on(AdminAPI.tokenKeys) { _ in
            let seal = assembly.trust.seal
            let live = assembly.storage.cluster?.liveTokenKeys ?? [:]
            return TokenKeyUsage(
                since: started.rfc3339,
                keys: seal.usage.map { TokenKeyUsage.Key(id: $0.key, opened: $0.opened) },
                sealing: seal.newestKey,
                lacking: TokenKeyUse(newest: seal.newestOpenKey, live: live).lacking.map(\.text)
            )
        }
        api.on(AdminAPI.trustSharing) { _ in
            let cluster = assembly.storage.cluster
            let problem = await cluster?.trust.whyUnshared(after: Self.patience)
            return TrustSharing(problem: problem.map { cluster?.link.problem ?? $0 })
        }
    }

    private func registration(_ query: TokenReport.Query) throws -> TokenReport.RegistrationState {
        let slot = Slot(device: DeviceNumber(query.deviceNumber), app: AppNumber(query.appNumber))
        let (registry, postOffice) = (assembly.delivery.registry, assembly.delivery.postOffice)
        guard let device = registry.device(slot.device), let app = registry.app(slot.app),
            let registration = postOffice.registration(slot)
        else { throw AdminError(.notFound, "there was never such a registration") }
        return TokenReport.RegistrationState(device: device, app: app, registration: registration)
    }
}
