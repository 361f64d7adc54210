import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel

/// `/v1/control/registration`: the registration of a device token in the running service.
package struct TokenRoute: Sendable {
    package static let name = "registration"
    package static let path = "/v1/control/registration"

    let registry: Registry
    let postOffice: PostOffice

    var route: ControlRoute {
        ControlRoute(TokenRoute.name) { body in
            guard let query = try? JSONDecoder().decode(TokenReport.Query.self, from: Data(body)) else {
                throw AdminError(.badRequest, "the body is not valid JSON for this request")
            }
            return Array(try JSONEncoder().encode(registration(query)))
        }
    }

    private func registration(_ query: TokenReport.Query) throws -> TokenReport.RegistrationState {
        let slot = Slot(device: DeviceNumber(query.deviceNumber), app: AppNumber(query.appNumber))
        guard let device = registry.device(slot.device), let app = registry.app(slot.app),
            let registration = postOffice.registration(slot)
        else { throw AdminError(.notFound, "there was never such a registration") }
        return TokenReport.RegistrationState(device: device, app: app, registration: registration)
    }
}
