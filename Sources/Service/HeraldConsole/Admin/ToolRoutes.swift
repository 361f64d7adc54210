import Foundation
import HeraldWeb
import Hummingbird

/// Readers of what providers send and have; none of them changes the service or makes a key.
package protocol ConsoleTools: Sendable {
    /// Findings of a payload, and the answers of both interfaces.
    func check(_ question: PayloadQuestion) throws -> any Encodable & Sendable

    /// The presentation of a payload on a device, in each language and state.
    func preview(_ question: PayloadQuestion) throws -> any Encodable & Sendable

    /// The registration of a device token.
    func token(_ question: ToolQuestion) throws -> any Encodable & Sendable

    /// The content of a provider token, and the answer that it gets.
    func jwt(_ question: ToolQuestion) throws -> any Encodable & Sendable

    /// The content of certificates and certificate signing requests.
    func certificate(_ question: ToolQuestion) throws -> any Encodable & Sendable

    /// The notifications in bytes of the binary interface.
    func frame(_ question: ToolQuestion) throws -> any Encodable & Sendable
}

/// A payload to look at.
package struct PayloadQuestion: Decodable, Sendable {
    /// The most languages of a preview.
    package static let maximumLanguages = 16

    /// The text if the payload is a JSON string, else the JSON object.
    package let payload: [UInt8]
    /// `apns-push-type`; nil for an alert.
    package let pushType: String?
    /// The user's languages; nil for English.
    package let languages: [String]?

    private enum CodingKeys: String, CodingKey {
        case payload, languages
        case pushType = "push_type"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        payload = try container.decode(PayloadBody.self, forKey: .payload).bytes
        pushType = try container.decodeIfPresent(String.self, forKey: .pushType)
        languages = try container.decodeIfPresent([String].self, forKey: .languages)
    }
}

/// A text to look at.
package struct ToolQuestion: Decodable, Sendable {
    package let text: String
}

/// Routes of the tools.
struct ToolRoutes: Sendable {
    let tools: any ConsoleTools

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.post("tools/check", PayloadQuestion.self) { body, _, _ in try WebReply.json(try tools.check(body)) }
        routes.post("tools/preview", PayloadQuestion.self) { body, _, _ in try WebReply.json(try tools.preview(body)) }
        routes.post("tools/token", ToolQuestion.self) { body, _, _ in try WebReply.json(try tools.token(body)) }
        routes.post("tools/jwt", ToolQuestion.self) { body, _, _ in try WebReply.json(try tools.jwt(body)) }
        routes.post("tools/certificate", ToolQuestion.self) { body, _, _ in
            try WebReply.json(try tools.certificate(body))
        }
        routes.post("tools/frame", ToolQuestion.self) { body, _, _ in try WebReply.json(try tools.frame(body)) }
        routes.refuseOtherMethods()
    }
}
