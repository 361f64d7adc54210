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
    /// The reason's number in the journal.
    ///
    /// Numbers are part of the stores' formats, never 0, and never reused.
    package var storedCode: UInt8 {
        switch self {
        case .badChannelID: 1
        case .badCollapseID: 2
        case .badDeviceToken: 3
        case .badExpirationDate: 4
        case .badMessageID: 5
        case .badPayload: 6
        case .badPriority: 7
        case .badRequestParams: 8
        case .badRequestPayload: 9
        case .badTopic: 10
        case .cannotCreateChannelConfig: 11
        case .channelNotRegistered: 12
        case .deviceTokenNotForTopic: 13
        case .duplicateHeaders: 14
        case .featureNotEnabled: 15
        case .idleTimeout: 16
        case .invalidPushType: 17
        case .missingChannelID: 18
        case .missingDeviceToken: 19
        case .missingPushType: 20
        case .missingTopic: 21
        case .payloadEmpty: 22
        case .topicDisallowed: 23
        case .badCertificate: 24
        case .badCertificateEnvironment: 25
        case .badEnvironmentKeyInToken: 26
        case .expiredProviderToken: 27
        case .forbidden: 28
        case .invalidProviderToken: 29
        case .missingProviderToken: 30
        case .topicMismatch: 31
        case .unrelatedKeyIDInToken: 32
        case .badPath: 33
        case .methodNotAllowed: 34
        case .expiredToken: 35
        case .unregistered: 36
        case .payloadTooLarge: 37
        case .tooManyProviderTokenUpdates: 38
        case .tooManyRequests: 39
        case .internalServerError: 40
        case .serviceUnavailable: 41
        case .shutdown: 42
        }
    }

    /// The reason of a number; nil if there is none.
    package init?(storedCode: UInt8) {
        guard let reason = RefusalReason.allCases.first(where: { $0.storedCode == storedCode }) else { return nil }
        self = reason
    }
}
