/// The status byte of the binary provider interface's error response ("Binary Provider API" in the Local and Remote
/// Notification Programming Guide).
///
/// An open set: a client may meet another byte.
package struct BinaryStatus: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let noError = BinaryStatus(rawValue: 0)
    /// The service failed; nothing of the notification is kept.
    package static let processingError = BinaryStatus(rawValue: 1)
    package static let missingDeviceToken = BinaryStatus(rawValue: 2)
    package static let missingTopic = BinaryStatus(rawValue: 3)
    package static let missingPayload = BinaryStatus(rawValue: 4)
    package static let invalidTokenSize = BinaryStatus(rawValue: 5)
    package static let invalidTopicSize = BinaryStatus(rawValue: 6)
    package static let invalidPayloadSize = BinaryStatus(rawValue: 7)
    package static let invalidToken = BinaryStatus(rawValue: 8)
    /// The service closes the connection; the identifier beside it is that of the last notification that was accepted.
    package static let shutdown = BinaryStatus(rawValue: 10)
    /// The notification could not be parsed.
    package static let protocolError = BinaryStatus(rawValue: 128)
    package static let unknown = BinaryStatus(rawValue: 255)

    /// All documented statuses.
    package static let known: [BinaryStatus] = [
        .noError, .processingError, .missingDeviceToken, .missingTopic, .missingPayload, .invalidTokenSize,
        .invalidTopicSize, .invalidPayloadSize, .invalidToken, .shutdown, .protocolError, .unknown,
    ]
}

extension BinaryStatus {
    /// The reason of the HTTP/2 API for the same refusal; nil if there is none, or if the status is not a refusal.
    ///
    /// A status stands for several reasons: this is the least specific of them. So 8 is `BadDeviceToken`, although the app
    /// may have been removed: only the feedback service reports dead tokens.
    package var refusalReason: RefusalReason? {
        switch self {
        case .processingError: .internalServerError
        case .missingDeviceToken: .missingDeviceToken
        case .missingTopic: .missingTopic
        case .missingPayload: .payloadEmpty
        case .invalidTokenSize, .invalidToken: .badDeviceToken
        case .invalidTopicSize: .badTopic
        case .invalidPayloadSize: .payloadTooLarge
        default: nil
        }
    }
}
