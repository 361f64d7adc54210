import HeraldModel

/// Outcome of a notification that was written to a service of the binary interface.
public enum BinaryAnswer: Hashable, Sendable {
    /// The service has it: its answer named a later notification as the first that it refused.
    case accepted
    /// The service refused it.
    case refused(BinaryRefusal)
    /// The service may have it: the connection ended without an answer, or time ran out.
    ///
    /// A second send may show it twice.
    case uncertain(ProviderError)
}

/// Refusal by a service of the binary interface.
public struct BinaryRefusal: Hashable, Sendable {
    /// The status byte of the error response ("Binary Provider API" in the Local and Remote Notification Programming
    /// Guide).
    public let status: UInt8
    /// The corresponding reason of the HTTP/2 API.
    ///
    /// `InternalServerError` (status 1), `MissingDeviceToken` (2), `MissingTopic` (3), `PayloadEmpty` (4), `BadDeviceToken`
    /// (5 and 8), `BadTopic` (6), `PayloadTooLarge` (7). Without a counterpart: `ProtocolError` (128: the service cannot
    /// parse the notification), `Unknown` (255), and `Status` with the number for others, for example `Status77`.
    public let reason: PushReason

    init(_ status: BinaryStatus) {
        self.status = status.rawValue
        let text =
            switch status {
            case .protocolError: "ProtocolError"
            case .unknown: "Unknown"
            default: status.refusalReason?.reason ?? "Status\(status.rawValue)"
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
    /// Converts a refusal of the binary interface to one of the HTTP/2 API.
    package init(_ refusal: BinaryRefusal) {
        id = nil
        status = refusal.reason.known?.httpStatus ?? 400
        reason = refusal.reason
        since = nil
        retryAfter = nil
        explanation = nil
    }
}
