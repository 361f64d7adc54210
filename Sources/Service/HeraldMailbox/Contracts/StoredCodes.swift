package import HeraldModel

extension PushType {
    /// The push type's number in stored notifications.
    ///
    /// Numbers are part of the stores' formats and never reused.
    package var storedCode: UInt8 {
        switch self {
        case .alert: 1
        case .background: 2
        case .complication: 3
        case .controls: 4
        case .fileprovider: 5
        case .liveactivity: 6
        case .location: 7
        case .mdm: 8
        case .pushtotalk: 9
        case .voip: 10
        case .widgets: 11
        }
    }

    /// The push type of a number; nil if there is none.
    package init?(storedCode: UInt8) {
        guard let kind = PushType.allCases.first(where: { $0.storedCode == storedCode }) else { return nil }
        self = kind
    }
}

extension RefusalReason {
    /// The reasons by their number in the journal, from 1 on.
    ///
    /// Numbers are part of the stores' formats, never 0, and never reused: a new reason is the last one.
    private static let stored: [RefusalReason] = [
        .badChannelID, .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID, .badPayload, .badPriority,
        .badRequestParams, .badRequestPayload, .badTopic, .cannotCreateChannelConfig, .channelNotRegistered,
        .deviceTokenNotForTopic, .duplicateHeaders, .featureNotEnabled, .idleTimeout, .invalidPushType,
        .missingChannelID, .missingDeviceToken, .missingPushType, .missingTopic, .payloadEmpty, .topicDisallowed,
        .badCertificate, .badCertificateEnvironment, .badEnvironmentKeyInToken, .expiredProviderToken, .forbidden,
        .invalidProviderToken, .missingProviderToken, .topicMismatch, .unrelatedKeyIDInToken, .badPath,
        .methodNotAllowed, .expiredToken, .unregistered, .payloadTooLarge, .tooManyProviderTokenUpdates,
        .tooManyRequests, .internalServerError, .serviceUnavailable, .shutdown,
    ]

    /// The reason's number in the journal; 0 for one that is not in the table.
    package var storedCode: UInt8 { UInt8(clamping: (RefusalReason.stored.firstIndex(of: self) ?? -1) + 1) }

    /// The reason of a number; nil if there is none.
    package init?(storedCode: UInt8) {
        guard (1...RefusalReason.stored.count).contains(Int(storedCode)) else { return nil }
        self = RefusalReason.stored[Int(storedCode) - 1]
    }
}
