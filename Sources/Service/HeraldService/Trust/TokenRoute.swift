import HTTPTypes
package import HeraldConsole
import HeraldMailbox
import HeraldModel

// Rows of the control socket only.
extension AdminAPI {
    package static let registration = AdminOperation<TokenReport.Query, TokenReport.RegistrationState>(
        .post,
        "control/registration",
        role: .admin,
        .reads,
        says: "The registration of a device token."
    )
    package static let tokenKeys = AdminOperation<NoContent, TokenKeyRoute.Usage>(
        .post,
        "control/token-keys",
        role: .admin,
        .reads,
        says: "The use of each key of device tokens."
    )
    package static let trustSharing = AdminOperation<NoContent, TrustSharingRoute.State>(
        .post,
        "control/trust-sharing",
        role: .admin,
        .reads,
        says: "Whether the other nodes of a cluster can learn what was changed at this one."
    )

    package static let control = [registration.row, tokenKeys.row, trustSharing.row]
}

/// The registration of a device token in the running service.
package struct TokenRoute: Sendable {
    let registry: Registry
    let postOffice: PostOffice

    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.registration) { call in try registration(call.body) }
    }

    private func registration(_ query: TokenReport.Query) throws -> TokenReport.RegistrationState {
        let slot = Slot(device: DeviceNumber(query.deviceNumber), app: AppNumber(query.appNumber))
        guard let device = registry.device(slot.device), let app = registry.app(slot.app),
            let registration = postOffice.registration(slot)
        else { throw AdminError(.notFound, "there was never such a registration") }
        return TokenReport.RegistrationState(device: device, app: app, registration: registration)
    }
}
