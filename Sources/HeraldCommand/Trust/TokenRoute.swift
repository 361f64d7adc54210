import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel

/// `/v1/control/registration`: what the numbers in a token stand for, in the running service.
struct TokenRoute: Sendable {
    static let name = "registration"
    static let path = "/v1/control/registration"

    let registry: Registry
    let postOffice: PostOffice

    var route: ControlRoute {
        ControlRoute(TokenRoute.name) { body in
            guard let question = try? JSONDecoder().decode(TokenReport.Question.self, from: Data(body)) else {
                throw AdminError(.badRequest, "the body is not the JSON that this request takes")
            }
            return Array(try JSONEncoder().encode(standing(question)))
        }
    }

    private func standing(_ question: TokenReport.Question) throws -> TokenReport.Standing {
        let slot = Slot(device: DeviceNumber(question.deviceNumber), app: AppNumber(question.appNumber))
        guard let device = registry.device(slot.device), let app = registry.app(slot.app),
            let registration = postOffice.registration(slot)
        else { throw AdminError(.notFound, "there never was such a registration") }
        return TokenReport.Standing(device: device, app: app, registration: registration)
    }
}
