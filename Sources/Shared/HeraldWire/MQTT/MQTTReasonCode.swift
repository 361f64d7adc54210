/// The outcome of an operation (MQTT 5 §2.4); 0x80 and above are failures.
///
/// Names are those of the standard. 3.1.1 has return codes of its own in CONNACK, see ``connectReturnCode``.
package enum MQTTReasonCode: UInt8, Hashable, Sendable, CaseIterable {
    case success = 0x00
    case grantedQoS1 = 0x01
    case grantedQoS2 = 0x02
    case disconnectWithWillMessage = 0x04
    case noMatchingSubscribers = 0x10
    case noSubscriptionExisted = 0x11
    case continueAuthentication = 0x18
    case reauthenticate = 0x19
    case unspecifiedError = 0x80
    case malformedPacket = 0x81
    case protocolError = 0x82
    case implementationSpecificError = 0x83
    case unsupportedProtocolVersion = 0x84
    case clientIdentifierNotValid = 0x85
    case badUserNameOrPassword = 0x86
    case notAuthorized = 0x87
    case serverUnavailable = 0x88
    case serverBusy = 0x89
    case banned = 0x8A
    case serverShuttingDown = 0x8B
    case badAuthenticationMethod = 0x8C
    case keepAliveTimeout = 0x8D
    case sessionTakenOver = 0x8E
    case topicFilterInvalid = 0x8F
    case topicNameInvalid = 0x90
    case packetIdentifierInUse = 0x91
    case packetIdentifierNotFound = 0x92
    case receiveMaximumExceeded = 0x93
    case topicAliasInvalid = 0x94
    case packetTooLarge = 0x95
    case messageRateTooHigh = 0x96
    case quotaExceeded = 0x97
    case administrativeAction = 0x98
    case payloadFormatInvalid = 0x99
    case retainNotSupported = 0x9A
    case qosNotSupported = 0x9B
    case useAnotherServer = 0x9C
    case serverMoved = 0x9D
    case sharedSubscriptionsNotSupported = 0x9E
    case connectionRateExceeded = 0x9F
    case maximumConnectTime = 0xA0
    case subscriptionIdentifiersNotSupported = 0xA1
    case wildcardSubscriptionsNotSupported = 0xA2

    /// DISCONNECT's name for 0x00.
    package static let normalDisconnection = success
    /// SUBACK's name for 0x00.
    package static let grantedQoS0 = success

    /// Whether the operation failed.
    package var isFailure: Bool { rawValue >= 0x80 }

    /// Whether the standard lists the code for packets of this kind (the tables of MQTT 5 §3.x.2.1).
    package func isAllowed(in kind: MQTTPacketKind) -> Bool {
        switch kind {
        case .connack: isAllowedInConnack
        case .puback, .pubrec: isAllowedInPuback
        case .pubrel, .pubcomp: self == .success || self == .packetIdentifierNotFound
        case .suback: isAllowedInSuback
        case .unsuback: isAllowedInUnsuback
        case .disconnect: isAllowedInDisconnect
        case .auth: self == .success || self == .continueAuthentication || self == .reauthenticate
        default: false
        }
    }

    private var isAllowedInConnack: Bool {
        switch self {
        case .success, .unspecifiedError, .malformedPacket, .protocolError, .implementationSpecificError,
            .unsupportedProtocolVersion, .clientIdentifierNotValid, .badUserNameOrPassword, .notAuthorized,
            .serverUnavailable, .serverBusy, .banned, .badAuthenticationMethod, .topicNameInvalid, .packetTooLarge,
            .quotaExceeded, .payloadFormatInvalid, .retainNotSupported, .qosNotSupported, .useAnotherServer,
            .serverMoved, .connectionRateExceeded:
            true
        default: false
        }
    }

    private var isAllowedInPuback: Bool {
        switch self {
        case .success, .noMatchingSubscribers, .unspecifiedError, .implementationSpecificError, .notAuthorized,
            .topicNameInvalid, .packetIdentifierInUse, .quotaExceeded, .payloadFormatInvalid:
            true
        default: false
        }
    }

    private var isAllowedInSuback: Bool {
        switch self {
        case .grantedQoS0, .grantedQoS1, .grantedQoS2, .unspecifiedError, .implementationSpecificError, .notAuthorized,
            .topicFilterInvalid, .packetIdentifierInUse, .quotaExceeded, .sharedSubscriptionsNotSupported,
            .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported:
            true
        default: false
        }
    }

    private var isAllowedInUnsuback: Bool {
        switch self {
        case .success, .noSubscriptionExisted, .unspecifiedError, .implementationSpecificError, .notAuthorized,
            .topicFilterInvalid, .packetIdentifierInUse:
            true
        default: false
        }
    }

    private var isAllowedInDisconnect: Bool {
        switch self {
        case .normalDisconnection, .disconnectWithWillMessage, .unspecifiedError, .malformedPacket, .protocolError,
            .implementationSpecificError, .notAuthorized, .serverBusy, .serverShuttingDown, .badAuthenticationMethod,
            .keepAliveTimeout, .sessionTakenOver, .topicFilterInvalid, .topicNameInvalid, .receiveMaximumExceeded,
            .topicAliasInvalid, .packetTooLarge, .messageRateTooHigh, .quotaExceeded, .administrativeAction,
            .payloadFormatInvalid, .retainNotSupported, .qosNotSupported, .useAnotherServer, .serverMoved,
            .sharedSubscriptionsNotSupported, .connectionRateExceeded, .maximumConnectTime,
            .subscriptionIdentifiersNotSupported, .wildcardSubscriptionsNotSupported:
            true
        default: false
        }
    }
}

extension MQTTReasonCode {
    /// The return code of 3.1.1 in CONNACK (MQTT 3.1.1 §3.2.2.3, 0 to 5).
    package var connectReturnCode: UInt8 {
        switch self {
        case .success: 0
        case .unsupportedProtocolVersion: 1
        case .clientIdentifierNotValid: 2
        case .badUserNameOrPassword: 4
        case .notAuthorized, .banned, .badAuthenticationMethod: 5
        default: 3
        }
    }

    /// Reads a return code of 3.1.1's CONNACK; nil for the reserved ones.
    package init?(connectReturnCode code: UInt8) {
        switch code {
        case 0: self = .success
        case 1: self = .unsupportedProtocolVersion
        case 2: self = .clientIdentifierNotValid
        case 3: self = .serverUnavailable
        case 4: self = .badUserNameOrPassword
        case 5: self = .notAuthorized
        default: return nil
        }
    }
}

extension MQTTReasonCode {
    /// The code in words, for people who do not read the standard.
    package var words: String {
        switch self {
        case .success: "success"
        case .grantedQoS1: "granted at QoS 1"
        case .grantedQoS2: "granted at QoS 2"
        case .disconnectWithWillMessage: "good-bye, with the will to be published"
        case .noMatchingSubscribers: "nobody is subscribed"
        case .noSubscriptionExisted: "there was no subscription"
        case .continueAuthentication: "authentication goes on"
        case .reauthenticate: "authentication begins anew"
        case .unspecifiedError: "an error that it does not name"
        case .malformedPacket: "a packet could not be read"
        case .protocolError: "a packet broke the rules of MQTT"
        case .implementationSpecificError: "a packet that it does not take"
        case .unsupportedProtocolVersion: "this version of MQTT is not spoken"
        case .clientIdentifierNotValid: "the client identifier is not the one that it expects"
        case .badUserNameOrPassword: "user name or password are wrong"
        case .notAuthorized: "not authorized"
        case .serverUnavailable: "not available at the moment"
        case .serverBusy: "too busy at the moment"
        case .banned: "this device is banned"
        case .serverShuttingDown: "it is stopping"
        case .badAuthenticationMethod: "this way of authentication is not known"
        case .keepAliveTimeout: "it heard nothing for too long"
        case .sessionTakenOver: "another connection with this device's certificate took over"
        case .topicFilterInvalid: "a topic filter that it does not take"
        case .topicNameInvalid: "a topic that it does not take"
        case .packetIdentifierInUse: "a packet identifier was used twice"
        case .packetIdentifierNotFound: "a packet identifier was not in use"
        case .receiveMaximumExceeded: "too much was unacknowledged at once"
        case .topicAliasInvalid: "a topic alias that it does not know"
        case .packetTooLarge: "a packet was too large"
        case .messageRateTooHigh: "too many messages in too short a time"
        case .quotaExceeded: "a limit is reached"
        case .administrativeAction: "ended by its operator"
        case .payloadFormatInvalid: "a payload that it cannot read"
        case .retainNotSupported: "messages are not retained"
        case .qosNotSupported: "this QoS is not available"
        case .useAnotherServer: "use another server for now"
        case .serverMoved: "the server has moved"
        case .sharedSubscriptionsNotSupported: "subscriptions cannot be shared"
        case .connectionRateExceeded: "too many connections in too short a time"
        case .maximumConnectTime: "the longest time for a connection is over"
        case .subscriptionIdentifiersNotSupported: "subscription identifiers are not available"
        case .wildcardSubscriptionsNotSupported: "wildcards are not available here"
        }
    }
}
