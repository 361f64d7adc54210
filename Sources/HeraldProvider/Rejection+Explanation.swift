public import HeraldModel

extension Rejection {
    /// What is wrong and what a provider can do about it, in one sentence without a full stop.
    public var explanation: String {
        switch self {
        case .badChannelID: "the channel identifier is not base64, or too long"
        case .badCollapseID: "the collapse identifier is longer than 64 bytes"
        case .badDeviceToken: "the device token is none of this service's, or is of the other environment"
        case .badExpirationDate: "the expiration is no UNIX time in whole seconds"
        case .badMessageID: "the identifier of the notification is no UUID"
        case .badPayload: "the payload is not a JSON object"
        case .badPriority: "the priority is not 10, 5 or 1, or is 10 with a background push"
        case .badRequestParams: "an attribute of the channel is missing, unknown, or has a value that it cannot have"
        case .badRequestPayload: "the body is not a JSON object with each attribute once"
        case .badTopic: "the topic is not one"
        case .cannotCreateChannelConfig: "the app has as many channels as it may have; delete some"
        case .channelNotRegistered: "the app has no such channel in this environment"
        case .deviceTokenNotForTopic: "the device token belongs to another app than the topic names"
        case .duplicateHeaders: "a header field was sent twice"
        case .featureNotEnabled: "the service does not broadcast for this app"
        case .idleTimeout: "the connection was idle for too long; connect again"
        case .invalidPushType: "the push type is unknown"
        case .missingChannelID: "no channel was named"
        case .missingDeviceToken: "the path has no device token"
        case .missingPushType: "no push type was named"
        case .missingTopic: "no topic was named, and the credential does not imply one"
        case .payloadEmpty: "the payload is empty"
        case .topicDisallowed: "the credential is not for this topic"
        case .badCertificate: "the certificate is not a provider's, or was revoked"
        case .badCertificateEnvironment: "the certificate is for the other environment"
        case .badEnvironmentKeyInToken: "the key is for the other environment"
        case .expiredProviderToken: "the provider token is older than an hour; make another, and check the clock"
        case .forbidden: "the service does not allow this"
        case .invalidProviderToken:
            "the provider token is not signed by a known key; check key, key identifier and team"
        case .missingProviderToken: "there is neither a certificate nor a provider token"
        case .topicMismatch: "the credential is not for this app"
        case .unrelatedKeyIDInToken: "the connection was opened with an unrelated key; open another for this one"
        case .badPath: "the path is not /3/device/ and a device token"
        case .methodNotAllowed: "the method is not POST"
        case .expiredToken: "the device token has expired; forget it"
        case .unregistered: "the app was removed from the device; forget the device token"
        case .payloadTooLarge: "the payload is larger than 4096 bytes (5120 for voip)"
        case .tooManyProviderTokenUpdates: "the provider token was changed more than once in 20 minutes"
        case .tooManyRequests: "too many notifications for one device token; send fewer, or later"
        case .internalServerError: "the service failed; try again later"
        case .serviceUnavailable: "the service cannot take notifications at the moment; try again later"
        case .shutdown: "the service is stopping; try again"
        }
    }
}
