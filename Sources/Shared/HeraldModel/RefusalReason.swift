/// The reason of a refusal.
///
/// One row for each reason, from which every listener and every client reads: the status of the HTTP/2 API ("Handling
/// error responses from APNs"), the status of the binary interface (Local and Remote Notification Programming Guide,
/// "Binary Provider API"), the advice to the provider, and the words.
public enum RefusalReason: String, Hashable, Sendable, CaseIterable, Codable, Error {
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

    /// The advice to a provider after a refusal.
    public enum Advice: Sendable {
        /// Never send this again unchanged.
        case giveUp
        /// Make a new provider token, then send again.
        case renewToken
        /// Send again later, with exponential backoff.
        case retryLater
    }

    /// One row of the table.
    private typealias Row = (httpStatus: Int, binaryStatus: BinaryStatus, advice: Advice, explanation: String)

    private var row: Row {
        switch self {
        case .badChannelID: (400, .unknown, .giveUp, "the channel identifier is not base64, or too long")
        case .badCollapseID: (400, .protocolError, .giveUp, "the collapse identifier is not \(CollapseID.rule)")
        case .badDeviceToken:
            (
                400, .invalidToken, .giveUp,
                "this service did not issue the device token, or it is of the other environment"
            )
        case .badExpirationDate:
            (400, .protocolError, .giveUp, "the expiration is not a UNIX time in whole seconds")
        case .badMessageID: (400, .protocolError, .giveUp, "the identifier of the notification is not a UUID")
        case .badPayload: (400, .protocolError, .giveUp, "the payload is not a JSON object")
        case .badPriority:
            (400, .protocolError, .giveUp, "the priority is not 10, 5 or 1, or is 10 with a background push")
        case .badRequestParams:
            (400, .unknown, .giveUp, "an attribute of the channel is missing, unknown or invalid")
        case .badRequestPayload: (400, .unknown, .giveUp, "the body is not a JSON object with each attribute once")
        case .badTopic: (400, .invalidTopicSize, .giveUp, "the topic is malformed")
        case .cannotCreateChannelConfig:
            (
                400, .unknown, .giveUp,
                "the app has reached its limit of channels, or its team the limit of new apps; delete some"
            )
        case .channelNotRegistered: (400, .unknown, .giveUp, "the app has no such channel in this environment")
        case .deviceTokenNotForTopic:
            (400, .invalidToken, .giveUp, "the device token belongs to another app than the topic names")
        case .duplicateHeaders: (400, .protocolError, .giveUp, "a header field was sent twice")
        case .featureNotEnabled: (400, .unknown, .giveUp, "the service does not offer broadcasts for this app")
        case .idleTimeout: (400, .shutdown, .retryLater, "the connection was idle for too long; connect again")
        case .invalidPushType: (400, .protocolError, .giveUp, "the push type is unknown")
        case .missingChannelID: (400, .unknown, .giveUp, "the channel identifier is missing")
        case .missingDeviceToken: (400, .missingDeviceToken, .giveUp, "the path has no device token")
        case .missingPushType: (400, .unknown, .giveUp, "the push type is missing")
        case .missingTopic:
            (400, .missingTopic, .giveUp, "the topic is missing, and the credential does not imply one")
        case .payloadEmpty: (400, .missingPayload, .giveUp, "the payload is empty")
        case .topicDisallowed: (400, .missingTopic, .giveUp, "the credential is not for this topic")
        case .badCertificate:
            (403, .unknown, .giveUp, "the certificate is not a provider certificate, or was revoked")
        case .badCertificateEnvironment: (403, .unknown, .giveUp, "the certificate is for the other environment")
        case .badEnvironmentKeyInToken: (403, .unknown, .giveUp, "the key is for the other environment")
        case .expiredProviderToken:
            (
                403, .unknown, .renewToken,
                "the provider token is older than an hour; sign another, and check the clock"
            )
        case .forbidden: (403, .unknown, .giveUp, "the service does not allow this")
        case .invalidProviderToken:
            (
                403, .unknown, .giveUp,
                "the provider token is not signed by a known key; check key, key identifier and team"
            )
        case .missingProviderToken: (403, .unknown, .giveUp, "there is neither a certificate nor a provider token")
        case .topicMismatch: (403, .unknown, .giveUp, "the credential is not for this app")
        case .unrelatedKeyIDInToken:
            (403, .unknown, .giveUp, "the connection was opened with an unrelated key; open another for this one")
        case .badPath: (404, .unknown, .giveUp, "the path is not /3/device/ and a device token")
        case .methodNotAllowed: (405, .unknown, .giveUp, "the method is not POST")
        case .expiredToken: (410, .invalidToken, .giveUp, "the device token has expired; forget it")
        case .unregistered:
            (410, .invalidToken, .giveUp, "the app was removed from the device; forget the device token")
        case .payloadTooLarge:
            (413, .invalidPayloadSize, .giveUp, "the payload is larger than 4096 bytes (5120 for voip)")
        case .tooManyProviderTokenUpdates:
            (429, .unknown, .retryLater, "the provider token was changed more than once in 20 minutes")
        case .tooManyRequests:
            (429, .processingError, .retryLater, "too many notifications for one device token; send fewer, or later")
        case .internalServerError: (500, .processingError, .retryLater, "the service failed; try again later")
        case .serviceUnavailable:
            (
                503, .processingError, .retryLater,
                "the service cannot take notifications at the moment; try again later"
            )
        case .shutdown: (503, .shutdown, .retryLater, "the service is stopping; try again")
        }
    }

    /// The reason string in the answer's JSON body.
    public var reason: String { rawValue }

    /// The status of the HTTP/2 answer.
    public var httpStatus: Int { row.httpStatus }

    /// The status of the binary interface.
    ///
    /// It has fewer statuses than there are reasons. Where a reason has none of its own, a fault of the notification is 128,
    /// which no client repeats, and a failure of the service is 1, which clients do. Reasons of channels are 255: the binary
    /// interface has no channels.
    package var binaryStatus: BinaryStatus { row.binaryStatus }

    /// The advice to the provider.
    public var advice: Advice { row.advice }

    /// The fault and its remedy, in one sentence without a full stop.
    public var explanation: String { row.explanation }
}

extension RefusalReason: CustomStringConvertible {
    /// The reason string.
    public var description: String { reason }
}
