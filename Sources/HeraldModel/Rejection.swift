/// Why a notification was refused: the one table from which every door and every client reads.
///
/// Each row pairs the reason string and status of the HTTP/2 API ("Handling error responses from APNs") with the status
/// of the binary interface (Local and Remote Notification Programming Guide, "Binary Provider API") and with what a
/// provider may do next.
public enum Rejection: String, Hashable, Sendable, CaseIterable, Codable, Error {
    case badChannelID = "BadChannelId"
    case badCollapseID = "BadCollapseId"
    case badDeviceToken = "BadDeviceToken"
    case badExpirationDate = "BadExpirationDate"
    case badMessageID = "BadMessageId"
    /// Herald's own: the payload is not a JSON object. APNs documents no reason for it and accepts such a payload.
    case badPayload = "BadPayload"
    case badPriority = "BadPriority"
    case badRequestParams = "BadRequestParams"
    case badRequestPayload = "BadRequestPayload"
    case badTopic = "BadTopic"
    case cannotCreateChannelConfig = "CannotCreateChannelConfig"
    case channelNotRegistered = "ChannelNotRegistered"
    case deviceTokenNotForTopic = "DeviceTokenNotForTopic"
    case duplicateHeaders = "DuplicateHeaders"
    case featureNotEnabled = "FeatureNotEnabled"
    case idleTimeout = "IdleTimeout"
    case invalidPushType = "InvalidPushType"
    case missingChannelID = "MissingChannelId"
    case missingDeviceToken = "MissingDeviceToken"
    case missingPushType = "MissingPushType"
    case missingTopic = "MissingTopic"
    case payloadEmpty = "PayloadEmpty"
    case topicDisallowed = "TopicDisallowed"
    case badCertificate = "BadCertificate"
    case badCertificateEnvironment = "BadCertificateEnvironment"
    /// Apple's page spells it `BadEnvironmentKeyIdInToken`; its servers send this.
    case badEnvironmentKeyInToken = "BadEnvironmentKeyInToken"
    case expiredProviderToken = "ExpiredProviderToken"
    case forbidden = "Forbidden"
    case invalidProviderToken = "InvalidProviderToken"
    case missingProviderToken = "MissingProviderToken"
    /// The credential is not for the app of a broadcast or channel request.
    case topicMismatch = "TopicMismatch"
    case unrelatedKeyIDInToken = "UnrelatedKeyIdInToken"
    case badPath = "BadPath"
    case methodNotAllowed = "MethodNotAllowed"
    case expiredToken = "ExpiredToken"
    case unregistered = "Unregistered"
    case payloadTooLarge = "PayloadTooLarge"
    case tooManyProviderTokenUpdates = "TooManyProviderTokenUpdates"
    case tooManyRequests = "TooManyRequests"
    case internalServerError = "InternalServerError"
    case serviceUnavailable = "ServiceUnavailable"
    case shutdown = "Shutdown"

    /// What a provider may do after a refusal.
    public enum Advice: Sendable {
        /// Never send this again unchanged.
        case giveUp
        /// Make a new provider token, then send again.
        case renewToken
        /// Send again later, with back-off.
        case retryLater
    }

    /// The reason string in the answer's JSON body.
    public var reason: String { rawValue }

    /// The status of the HTTP/2 answer.
    public var httpStatus: Int {
        switch self {
        case .badChannelID, .badCollapseID, .badDeviceToken, .badExpirationDate, .badMessageID, .badPayload,
            .badPriority, .badRequestParams, .badRequestPayload, .badTopic, .cannotCreateChannelConfig,
            .channelNotRegistered, .deviceTokenNotForTopic, .duplicateHeaders, .featureNotEnabled, .idleTimeout,
            .invalidPushType, .missingChannelID, .missingDeviceToken, .missingPushType, .missingTopic, .payloadEmpty,
            .topicDisallowed:
            400
        case .badCertificate, .badCertificateEnvironment, .badEnvironmentKeyInToken, .expiredProviderToken, .forbidden,
            .invalidProviderToken, .missingProviderToken, .topicMismatch, .unrelatedKeyIDInToken:
            403
        case .badPath: 404
        case .methodNotAllowed: 405
        case .expiredToken, .unregistered: 410
        case .payloadTooLarge: 413
        case .tooManyProviderTokenUpdates, .tooManyRequests: 429
        case .internalServerError: 500
        case .serviceUnavailable, .shutdown: 503
        }
    }

    /// What a provider may do next.
    public var advice: Advice {
        switch self {
        case .expiredProviderToken: .renewToken
        case .internalServerError, .serviceUnavailable, .shutdown, .idleTimeout, .tooManyRequests,
            .tooManyProviderTokenUpdates:
            .retryLater
        default: .giveUp
        }
    }
}

extension Rejection: CustomStringConvertible {
    /// The reason string.
    public var description: String { reason }
}
