import HeraldModel

/// What became of a notification that was written to a service of the binary interface.
public enum BinaryAnswer: Hashable, Sendable {
    /// The service has it: it named a later one as the first that it did not take.
    case accepted
    /// It does not take the notification.
    case refused(BinaryRefusal)
    /// The service may have it or not, and nobody can say: the connection ended without a word, or time ran out.
    ///
    /// Sent again, its device may get it twice.
    case uncertain(ProviderError)
}

/// Why a service of the binary interface refused a notification.
public struct BinaryRefusal: Hashable, Sendable {
    /// The status byte of the error response ("Binary Provider API" in the Local and Remote Notification Programming
    /// Guide).
    public let status: UInt8
    /// The reason that the HTTP/2 API has for the same, as far as it has one.
    ///
    /// `InternalServerError` (1), `MissingDeviceToken` (2), `MissingTopic` (3), `PayloadEmpty` (4), `BadDeviceToken` (5
    /// and 8), `BadTopic` (6), `PayloadTooLarge` (7); of those that it has none for, `ProtocolError` (128: the service
    /// cannot read it), `Unknown` (255), and the number for any other, like `Status77`.
    public let reason: PushReason

    init(_ status: BinaryStatus) {
        self.status = status.rawValue
        let text =
            switch status {
            case .protocolError: "ProtocolError"
            case .unknown: "Unknown"
            default: status.rejection?.reason ?? "Status\(status.rawValue)"
            }
        reason = PushReason(text: text)
    }
}

extension BinaryAnswer: CustomStringConvertible {
    /// The answer in a few words.
    public var description: String {
        switch self {
        case .accepted: "accepted"
        case .refused(let refusal): "refused with status \(refusal.status), \(refusal.reason)"
        case .uncertain(let error): "uncertain: \(error)"
        }
    }
}

extension PushRefusal {
    /// A refusal by the binary interface, as one of the HTTP/2 API.
    package init(_ refusal: BinaryRefusal) {
        id = nil
        status = refusal.reason.rejection?.httpStatus ?? 400
        reason = refusal.reason
        since = nil
        retryAfter = nil
        explanation = nil
    }
}
