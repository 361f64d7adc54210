import Foundation
public import HeraldModel

/// What the service answered.
public enum PushAnswer: Hashable, Sendable {
    /// It has the notification: delivered, stored, or tried once if it was not to be stored.
    case accepted(PushReceipt)
    /// It does not take the notification.
    case refused(PushRefusal)
}

/// The service's word that it has a notification.
public struct PushReceipt: Hashable, Sendable {
    /// `apns-id`, as the service wrote it.
    public let id: String
    /// `apns-unique-id`, where the service gives one.
    public let uniqueID: String?
    /// What the service says it did, if it was asked and can say.
    public let explanation: String?
}

extension PushReceipt {
    /// A receipt whose answer was lost, and whose fate was found out (``ProviderConfiguration/resolver``).
    init(resolved id: NotificationID) {
        self.init(id: id.description, uniqueID: nil, explanation: nil)
    }

    /// A receipt of the binary interface, which knows no `apns-id`: the one that the sender has for it.
    package init(binary id: NotificationID?) {
        self.init(id: id?.description ?? "", uniqueID: nil, explanation: nil)
    }
}

/// Why a notification was refused.
public struct PushRefusal: Hashable, Sendable {
    /// `apns-id`, as the service wrote it.
    public let id: String?
    /// The HTTP status.
    public let status: Int
    /// The reason.
    public let reason: PushReason
    /// With status 410: since when the token is dead.
    public let since: WallTime?
    /// How long the service asks to wait before another attempt (`retry-after`).
    public let retryAfter: Duration?
    /// Why, in the service's words if it was asked and can say.
    public let explanation: String?
}

/// The reason string of a refusal: one that is documented, or one that is not and is kept as it came.
public struct PushReason: Hashable, Sendable {
    /// The reason string; empty if the answer had none.
    public let text: String

    /// The documented reason; nil for one that this version does not know.
    public var rejection: Rejection? { Rejection(rawValue: text) }
}

extension PushReason: CustomStringConvertible {
    /// The reason string.
    public var description: String { text.isEmpty ? "no reason given" : text }
}

extension PushAnswer {
    /// The longest body that is read, in bytes; a refusal's has some hundred.
    static let maximumBodyBytes = 16_384

    /// The reason in a JSON body, or in a GOAWAY's debug data; empty if there is none.
    static func reason(of body: [UInt8]) -> PushReason {
        let content = try? JSONDecoder().decode(RefusalBody.self, from: Data(body))
        return PushReason(text: content?.reason ?? "")
    }

    /// Reads an answer: its status, the values of its header fields by name, and its whole body.
    ///
    /// The request's identifier stands in the field `identifier`.
    package init(
        status: Int,
        field: (String) -> String?,
        body: [UInt8],
        identifier: String = "apns-id"
    ) throws(ProviderError) {
        let id = field(identifier)
        // 201 and 204 are answers about channels.
        guard ![200, 201, 204].contains(status) else {
            guard let id else {
                throw ProviderError(
                    .badAnswer,
                    "the answer is no push service's: it has no \(identifier)",
                    mayHaveArrived: true
                )
            }
            self = .accepted(
                PushReceipt(id: id, uniqueID: field("apns-unique-id"), explanation: field("herald-explanation"))
            )
            return
        }
        let content = try? JSONDecoder().decode(RefusalBody.self, from: Data(body))
        guard content != nil || id != nil else {
            // Whoever stands before a service may have passed the request on before it failed itself.
            throw ProviderError(
                .badAnswer,
                "the answer is no push service's: status \(status) without a reason",
                mayHaveArrived: status >= 500
            )
        }
        self = .refused(
            PushRefusal(
                id: id,
                status: status,
                reason: PushReason(text: content?.reason ?? ""),
                since: content?.timestamp.map { WallTime(milliseconds: $0) },
                retryAfter: field("retry-after").flatMap { Int64($0) }.map { .seconds(max(0, $0)) },
                explanation: content?.explanation
            )
        )
    }
}

extension PushAnswer: CustomStringConvertible {
    /// The answer in a few words.
    public var description: String {
        switch self {
        case .accepted: "accepted"
        case .refused(let refusal): "refused with \(refusal.status) \(refusal.reason)"
        }
    }
}

/// The JSON body of a refusal ("Handling error responses from APNs").
private struct RefusalBody: Decodable {
    let reason: String
    /// Milliseconds since the UNIX epoch.
    let timestamp: Int64?
    /// Herald's own.
    let explanation: String?

    private enum CodingKeys: String, CodingKey {
        case reason
        case timestamp
        case explanation
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        reason = try members.decode(String.self, forKey: .reason)
        // What stands beside the reason, in whatever form, does not take it away.
        timestamp = try? members.decode(Int64.self, forKey: .timestamp)
        explanation = try? members.decode(String.self, forKey: .explanation)
    }
}
