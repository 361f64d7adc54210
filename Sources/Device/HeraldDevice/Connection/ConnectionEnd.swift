import HeraldWire

// How a connection ends, and what the device does then.
extension DeviceSession {
    /// The end of a connection.
    struct End: Error, Hashable, Sendable {
        enum Advice: Hashable {
            /// Reconnect.
            case retry
            /// Reconnect after the longest pause.
            case retryLater
            /// Reconnect after a pause that grows each time.
            case takenOver
            /// Do not reconnect: it would end in the same way, until something changes at the service.
            case giveUp
            /// Do not reconnect with this certificate: the service never accepts it again.
            case dismissed
        }

        let advice: Advice
        let reason: String
        /// Whether the service's certificate is not trusted.
        var isUntrusted = false
        /// The address to which the service sends the device.
        var reference: String?

        /// The end of a connection whose certificate was replaced meanwhile: a refusal may concern only that certificate.
        var withNextCredential: End {
            guard advice == .giveUp || advice == .dismissed else { return self }
            let reason = "the service refused the certificate of this connection; the renewed one is used next"
            return End(advice: .retry, reason: reason)
        }
    }

    static func end(for code: MQTTReasonCode, _ reason: String?) -> End {
        let advice: End.Advice =
            switch code {
            case .serverUnavailable, .unspecifiedError, .useAnotherServer, .serverMoved: .retry
            case .serverBusy, .quotaExceeded, .connectionRateExceeded: .retryLater
            case .notAuthorized, .banned: .dismissed
            default: .giveUp
            }
        let remedy = advice == .dismissed ? "; \(DeviceConnector.remedy)" : ""
        return End(advice: advice, reason: "the service refused the connection: \(text(code, reason))\(remedy)")
    }

    static func end(for disconnect: MQTTDisconnect) -> End {
        let words = text(disconnect.reasonCode, disconnect.properties.reasonString)
        let advice: End.Advice =
            switch disconnect.reasonCode {
            case .sessionTakenOver: .takenOver
            case .quotaExceeded, .messageRateTooHigh, .connectionRateExceeded, .serverBusy: .retryLater
            default: .retry  // Also after 0x87: if it was for the certificate, the next CONNACK says so.
            }
        return End(advice: advice, reason: "the service ended the connection: \(words)")
    }

    /// The reason code in words, with the service's reason string.
    static func text(_ code: MQTTReasonCode, _ reason: String?) -> String {
        reason.map { "\(code.words) (\($0))" } ?? code.words
    }
}
