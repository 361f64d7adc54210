/// Why the binary provider interface refused a notification: one byte of its error response ("Binary Provider API" in
/// the Local and Remote Notification Programming Guide).
///
/// An open set: a client may meet a byte that is none of these.
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

    /// All that the documents name.
    package static let known: [BinaryStatus] = [
        .noError, .processingError, .missingDeviceToken, .missingTopic, .missingPayload, .invalidTokenSize,
        .invalidTopicSize, .invalidPayloadSize, .invalidToken, .shutdown, .protocolError, .unknown,
    ]
}

extension Rejection {
    /// The status of the binary interface.
    ///
    /// It has fewer than there are reasons. Of what has none of its own, faults of the notification are 128, which no
    /// client repeats, and troubles of the service are 1, which clients do.
    package var binaryStatus: BinaryStatus {
        switch self {
        case .badDeviceToken, .deviceTokenNotForTopic, .unregistered, .expiredToken: .invalidToken
        case .missingDeviceToken: .missingDeviceToken
        case .missingTopic, .topicDisallowed: .missingTopic
        case .badTopic: .invalidTopicSize
        case .payloadEmpty: .missingPayload
        case .payloadTooLarge: .invalidPayloadSize
        case .badPayload, .badPriority, .badExpirationDate, .badCollapseID, .badMessageID, .duplicateHeaders,
            .invalidPushType:
            .protocolError
        case .internalServerError, .serviceUnavailable, .tooManyRequests: .processingError
        case .shutdown, .idleTimeout: .shutdown
        case .badCertificate, .badCertificateEnvironment, .badEnvironmentKeyInToken, .expiredProviderToken, .forbidden,
            .invalidProviderToken, .missingProviderToken, .unrelatedKeyIDInToken, .badPath, .methodNotAllowed,
            .tooManyProviderTokenUpdates:
            .unknown
        // Of channels, which this interface does not know.
        case .badChannelID, .badRequestParams, .badRequestPayload, .cannotCreateChannelConfig, .channelNotRegistered,
            .featureNotEnabled, .missingChannelID, .missingPushType, .topicMismatch:
            .unknown
        }
    }
}

extension BinaryStatus {
    /// The reason that the HTTP/2 API has for the same refusal; nil where it has none, and for what is no refusal.
    ///
    /// A status stands for several reasons; the one that says no more than the status is meant. So 8 is `BadDeviceToken`,
    /// although the app may have been removed: that a token is dead, only the feedback service says.
    package var rejection: Rejection? {
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
