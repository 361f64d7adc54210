package import HeraldModel
package import HeraldProvider

/// What came of one try to send.
package enum SendResult: Sendable {
    case answered(PushAnswer)
    /// Nothing reached the service.
    case notSent(String)
    /// It may have reached the service.
    case uncertain(String)
    /// Nothing was sent, since the service does not accept the credential.
    case notAccepted(String)
    /// It cannot be sent as it is.
    case impossible(String)
    /// The service's interface cannot carry it.
    case refused(String)
}

/// What an answer means for its row.
package struct AnswerRules: Sendable, Hashable {
    package var retry = RetryPolicy()

    package init() {}

    /// - Parameters:
    ///   - result: What came of it.
    ///   - attempts: How often it was tried before.
    ///   - deadline: When it is worth nothing any more.
    ///   - now: The moment.
    ///   - share: A random number from 0 to 1.
    /// - Returns: What to write into the row.
    package func change(
        after result: SendResult,
        attempts: Int,
        deadline: WallTime,
        now: WallTime,
        share: Double
    ) -> RowOutcome.Change {
        func later(_ reason: String, uncertain: Bool, atLeast asked: Duration = .zero) -> RowOutcome.Change {
            let next = now + max(retry.pause(after: attempts + 1, share: share), min(asked, .seconds(3600)))
            // A last try at the deadline itself would come too late; what may have been sent is asked for once more.
            guard next < deadline || uncertain else { return .final(.expired, reason: reason) }
            return .later(next, reason: reason, uncertain: uncertain, counts: true)
        }
        switch result {
        case .answered(.accepted): return .final(.sent, reason: nil)
        case .answered(.refused(let refusal)):
            let reason = AnswerRules.word(for: refusal)
            return AnswerRules.isWorthAnotherTry(refusal)
                ? later(reason, uncertain: false, atLeast: refusal.retryAfter ?? .zero)
                : .final(.refused, reason: reason)
        case .notSent(let reason), .notAccepted(let reason): return later(reason, uncertain: false)
        case .uncertain(let reason): return later(reason, uncertain: true)
        case .impossible(let reason): return .final(.failed, reason: reason)
        case .refused(let reason): return .final(.refused, reason: reason)
        }
    }

    /// Whether a refusal is about the moment and not about the notification; where the reason is not known, the status
    /// tells.
    package static func isWorthAnotherTry(_ refusal: PushRefusal) -> Bool {
        switch refusal.reason.rejection?.advice {
        case .retryLater, .renewToken: true
        case .giveUp: false
        case nil: refusal.status >= 500 || refusal.status == 429
        }
    }

    /// Whether a refusal is about the credential and not about the row.
    ///
    /// Every 403 is ("error with the certificate or the provider's authentication token"). `TopicDisallowed` is where the
    /// configuration names the topic: there somebody says that the credential is for it. Where a credential is for every
    /// topic, the row's is one that nobody promised.
    package static func isAboutCredential(_ refusal: PushRefusal, isNamed: Bool) -> Bool {
        switch refusal.reason.rejection {
        case .topicDisallowed: isNamed
        case let known?: known.httpStatus == 403
        case nil: refusal.status == 403
        }
    }

    /// The reason as it is written into the row: one short word of a service that may be anybody's.
    package static func word(for refusal: PushRefusal) -> String {
        let word = refusal.reason.text.unicodeScalars.filter {
            $0.properties.isAlphabetic || $0.properties.numericType != nil
        }
        return word.isEmpty ? "Status\(refusal.status)" : String(String.UnicodeScalarView(word.prefix(64)))
    }

    /// Whether a refusal says that the token is dead.
    ///
    /// `BadDeviceToken` does not: it may be the environment that is wrong.
    package static func isDeath(_ refusal: PushRefusal) -> Bool {
        refusal.status == 410
    }
}
