package import HeraldModel

/// Which topics of a service rest, since it does not accept the credential for them: their rows wait until somebody has
/// mended it, instead of being refused one after the other.
///
/// Each topic for itself: where one credential sends for many, a topic that it may not use says nothing of the others.
/// Once a pause is over one row is tried, and the others wait for what becomes of it.
package struct CredentialRest: Sendable {
    /// That a topic rests.
    package struct Trouble: Sendable, Hashable {
        /// The service's word.
        package let reason: String
        package let since: WallTime
        fileprivate var failures = 1
        fileprivate var until: WallTime
        /// Until when the row that is tried is waited for; nil if none is.
        fileprivate var trial: WallTime?
    }

    /// So many topics are told apart, which whoever queues rows chooses; further ones are one.
    package static let maximumTopics = 1000
    /// The longest pause: so late at the most it is seen that the credential was mended.
    private static let longestPause = Duration.seconds(60)
    /// How long the others wait while one row is tried.
    private static let trialPause = Duration.seconds(2)
    /// How long the answer to that one is waited for.
    private static let trialLife = Duration.seconds(90)

    private let policy: RetryPolicy
    private var known: [Topic: Trouble] = [:]
    private var others: Trouble?

    package init(_ policy: RetryPolicy) {
        self.policy = policy
    }

    /// What rests, by topic; nil stands for all that are not told apart.
    package var troubles: [(topic: Topic?, trouble: Trouble)] {
        known.sorted { $0.key.name < $1.key.name }.map { ($0.key, $0.value) } + (others.map { [(nil, $0)] } ?? [])
    }

    /// Why a topic rests; nil if it does not.
    package func reason(_ topic: Topic) -> String? { self[topic]?.reason }

    /// Asks for leave to send a row.
    /// - Returns: Until when it has to wait; nil if it may be sent now.
    package mutating func admit(_ topic: Topic, at now: WallTime) -> WallTime? {
        guard var trouble = self[topic] else { return nil }
        if now < trouble.until { return trouble.until }
        if let trial = trouble.trial, now < trial { return now + CredentialRest.trialPause }
        trouble.trial = now + CredentialRest.trialLife
        self[topic] = trouble
        return nil
    }

    /// The service did not accept the credential; of many rows that were under way, one counts.
    /// - Returns: Until when the topic rests; and whether it did not before.
    package mutating func refused(
        _ topic: Topic,
        _ reason: String,
        at now: WallTime,
        share: Double
    ) -> (until: WallTime, isNew: Bool) {
        func pause(_ failures: Int) -> WallTime {
            now + min(policy.pause(after: failures, share: share), CredentialRest.longestPause)
        }
        guard var trouble = self[topic] else {
            let trouble = Trouble(reason: reason, since: now, until: pause(1))
            self[topic] = trouble
            return (trouble.until, true)
        }
        if now >= trouble.until {
            trouble.failures += 1
            trouble.until = pause(trouble.failures)
            trouble.trial = nil
            self[topic] = trouble
        }
        return (trouble.until, false)
    }

    /// A row was answered as one whose credential is accepted.
    /// - Returns: Whether the topic had been resting.
    package mutating func accepted(_ topic: Topic) -> Bool {
        guard !known.isEmpty || others != nil, self[topic] != nil else { return false }
        self[topic] = nil
        return true
    }

    /// A row got no answer that tells: if it was the one that was tried, the next one is.
    package mutating func unanswered(_ topic: Topic, at now: WallTime) {
        guard !known.isEmpty || others != nil, var trouble = self[topic], now >= trouble.until else { return }
        trouble.trial = nil
        trouble.until = now + CredentialRest.trialPause
        self[topic] = trouble
    }

    private subscript(topic: Topic) -> Trouble? {
        get {
            if known.isEmpty, others == nil { return nil }
            return known[topic] ?? (known.count < CredentialRest.maximumTopics ? nil : others)
        }
        set {
            if known[topic] != nil || known.count < CredentialRest.maximumTopics {
                known[topic] = newValue
                if known.count < CredentialRest.maximumTopics { others = nil }
            } else {
                others = newValue
            }
        }
    }
}
