package import HeraldModel
package import HeraldProvider

/// Result of one attempt to send.
package enum SendResult: Sendable {
    case answered(PushAnswer)
    /// It did not reach the service.
    case notSent(RowError)
    /// It may have reached the service.
    case uncertain(RowError)
    /// The service refuses the credential. Nothing was sent.
    case credentialRefused(RowError)
    /// The notification is invalid. Nothing was sent.
    case invalid(RowError)
    /// The service's interface cannot carry the notification.
    case refused(RowError)

    /// The relay's own error; nil for an answer of the service.
    var error: RowError? {
        switch self {
        case .answered: nil
        case .notSent(let error), .uncertain(let error), .credentialRefused(let error), .invalid(let error),
            .refused(let error):
            error
        }
    }
}

/// Decides from the result of an attempt whether and when the relay tries a row again.
package struct RetryRules: Sendable, Hashable {
    package var backOff = RetryBackOff()
    /// Maximum age of a row without `give_up_at`.
    package var longestLife: Duration = .seconds(86_400)

    /// The change to write after an attempt, with `attempts` before it; the row is not sent after `deadline`.
    ///
    /// `share`, 0 to 1, is the random jitter; it is read if the row is tried again.
    package func change(
        after result: SendResult,
        attempts: Int,
        deadline: WallTime,
        now: WallTime,
        share: @autoclosure () -> Double
    ) -> RowOutcome.Change {
        func later(_ reason: String, uncertain: Bool, atLeast asked: Duration = .zero) -> RowOutcome.Change {
            let next = now + max(backOff.pause(after: attempts + 1, share: share()), min(asked, .seconds(3600)))
            // An attempt at the deadline would be too late. If one may have arrived, it is looked up once more.
            guard next < deadline || uncertain else { return .final(.expired, reason: reason) }
            return .later(next, reason: reason, uncertain: uncertain, counts: true)
        }
        switch result {
        case .answered(.accepted): return .final(.sent, reason: nil)
        case .answered(.refused(let refusal)):
            let reason = RetryRules.word(for: refusal)
            return RetryRules.isTemporary(refusal)
                ? later(reason, uncertain: false, atLeast: refusal.retryAfter ?? .zero)
                : .final(.refused, reason: reason)
        case .notSent(let error), .credentialRefused(let error): return later(error.reason.rawValue, uncertain: false)
        case .uncertain(let error): return later(error.reason.rawValue, uncertain: true)
        case .invalid(let error): return .final(.failed, reason: error.reason.rawValue)
        case .refused(let error): return .final(.refused, reason: error.reason.rawValue)
        }
    }

    /// Whether a refusal is temporary; if the reason is unknown, the status decides.
    package static func isTemporary(_ refusal: PushRefusal) -> Bool {
        switch refusal.reason.known?.advice {
        case .retryLater, .renewToken: true
        case .giveUp: false
        case nil: refusal.status >= 500 || refusal.status == 429
        }
    }

    /// Whether a refusal concerns the credential and not the row.
    ///
    /// Every 403 does ("error with the certificate or the provider's authentication token"). `TopicDisallowed` does if the
    /// configuration names the topic. A credential without named topics need not cover the topic of a row.
    package static func isAboutCredential(_ refusal: PushRefusal, isNamed: Bool) -> Bool {
        switch refusal.reason.known {
        case .topicDisallowed: isNamed
        case let known?: known.httpStatus == 403
        case nil: refusal.status == 403
        }
    }

    /// The row's reason: one short word, since the service may be anybody's.
    package static func word(for refusal: PushRefusal) -> String {
        let word = refusal.reason.text.unicodeScalars.filter {
            $0.properties.isAlphabetic || $0.properties.numericType != nil
        }
        return word.isEmpty ? "Status\(refusal.status)" : String(String.UnicodeScalarView(word.prefix(64)))
    }

    /// Whether a refusal says that the token is dead.
    ///
    /// `BadDeviceToken` does not: the environment may be wrong.
    package static func isDeadToken(_ refusal: PushRefusal) -> Bool {
        refusal.status == 410
    }
}
