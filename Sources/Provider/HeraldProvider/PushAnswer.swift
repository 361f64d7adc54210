import Foundation
public import HeraldModel

/// The service's answer to a notification.
public enum PushAnswer: Hashable, Sendable {
    /// The service has the notification: delivered, stored, or tried once if storage was not requested.
    case accepted(PushReceipt)
    /// The service refuses the notification.
    case refused(PushRefusal)
}

/// The service's acknowledgement of a notification.
public struct PushReceipt: Hashable, Sendable {
    /// `apns-id`, as the service wrote it; `apns-request-id` for a broadcast.
    public let id: String
    /// `apns-unique-id`, where the service gives one.
    public let uniqueID: String?
    /// The service's explanation in words, if ``ProviderConfiguration/explains`` is set and it has one.
    public let explanation: String?
}

extension PushReceipt {
    /// A receipt for a lost answer, from ``ProviderConfiguration/resolver``.
    init(resolved id: NotificationID) {
        self.init(id: id.description, uniqueID: nil, explanation: nil)
    }

    /// A receipt of the binary interface, which has no `apns-id`: it has the sender's identifier.
    package init(binary id: NotificationID?) {
        self.init(id: id?.description ?? "", uniqueID: nil, explanation: nil)
    }
}

/// Refusal of a notification.
public struct PushRefusal: Hashable, Sendable {
    /// `apns-id`, as the service wrote it; nil if the answer has none.
    public let id: String?
    /// HTTP status, 400 to 599.
    public let status: Int
    /// Reason string of the service.
    public let reason: PushReason
    /// Time since when the token is dead; with status 410 only.
    public let since: WallTime?
    /// Pause that the service asks for before another attempt (`retry-after`), in whole seconds.
    public let retryAfter: Duration?
    /// The service's explanation in words, if ``ProviderConfiguration/explains`` is set and it has one.
    public let explanation: String?
}

/// Reason string of a refusal, documented or not.
public struct PushReason: Hashable, Sendable {
    /// The string as received; empty if the answer had none.
    public let text: String

    /// The documented reason; nil if this version does not know the string.
    public var known: RefusalReason? { RefusalReason(rawValue: text) }
}

extension PushReason: CustomStringConvertible {
    /// The reason string.
    public var description: String { text.isEmpty ? "no reason given" : text }
}

extension PushAnswer {
    /// Maximum length of an answer's body, in bytes; a refusal has a few hundred.
    static let maximumBodyBytes = 16_384

    /// Reads the reason from a JSON body or from the debug data of a GOAWAY; empty if there is none.
    static func reason(of body: [UInt8]) -> PushReason {
        let content = try? JSONDecoder().decode(RefusalBody.self, from: Data(body))
        return PushReason(text: content?.reason ?? "")
    }

    /// Reads an answer from its status, its header fields and its whole body.
    ///
    /// `identifier` names the header field with the request's identifier.
    package init(
        status: Int,
        field: (String) -> String?,
        body: [UInt8],
        identifier: String = "apns-id"
    ) throws(ProviderError) {
        let id = field(identifier)
        // 201 and 204 answer channel management requests.
        if status == 200 || status == 201 || status == 204 {
            guard let id else {
                throw ProviderError(
                    .badAnswer,
                    "the answer is not from a push service: it has no \(identifier)",
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
            // A proxy may have passed the request on before it failed.
            throw ProviderError(
                .badAnswer,
                "the answer is not from a push service: status \(status) without a reason",
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
    /// Herald's own member.
    let explanation: String?

    private enum CodingKeys: String, CodingKey {
        case reason, timestamp, explanation
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        reason = try members.decode(String.self, forKey: .reason)
        // The reason counts even if a member beside it has another type.
        timestamp = try? members.decode(Int64.self, forKey: .timestamp)
        explanation = try? members.decode(String.self, forKey: .explanation)
    }
}
