package import HeraldModel

/// Circuit breakers of a service's topics: opens if the service refuses the credential for a topic, so that its rows wait
/// for an operator instead of being refused.
///
/// Topics are independent, since a credential may cover only some. After the pause one row probes the credential, and the
/// others wait for its result. A step of the wall clock neither ends nor prolongs a pause.
package struct CredentialBreaker: Sendable {
    /// An open breaker.
    package struct Failure: Sendable, Hashable {
        /// Reason string of the service.
        ///
        /// The service's word.
        package let reason: String
        package let since: WallTime
        fileprivate var count = 1
        fileprivate var until: ContinuousClock.Instant
        /// When the current probe times out; nil without a probe.
        fileprivate var probe: ContinuousClock.Instant?
    }

    /// Maximum number of topics counted separately: the programs that queue rows choose them.
    ///
    /// Further ones share a breaker.
    package static let maximumTopics = 1000
    /// Longest pause, after which a corrected credential is noticed.
    private static let longestPause = Duration.seconds(60)
    /// Pause of the other rows during a probe.
    private static let probePause = Duration.seconds(2)
    private static let probeTimeout = Duration.seconds(90)

    private let backOff: RetryBackOff
    private var known: [Topic: Failure] = [:]
    private var others: Failure?

    package init(_ backOff: RetryBackOff) {
        self.backOff = backOff
    }

    /// Open breakers by topic; nil stands for the shared one.
    package var failures: [(topic: Topic?, failure: Failure)] {
        known.sorted { $0.key.name < $1.key.name }.map { ($0.key, $0.value) } + (others.map { [(nil, $0)] } ?? [])
    }

    /// Why the breaker of a topic is open; nil if it is closed.
    package func reason(_ topic: Topic) -> String? { self[topic]?.reason }

    /// Admits a row, as a probe if the pause is over.
    /// - Returns: Time until to ask again; nil if it may be sent now.
    package mutating func admit(_ topic: Topic, at now: ContinuousClock.Instant) -> Duration? {
        guard var failure = self[topic] else { return nil }
        if now < failure.until { return failure.until - now }
        if let probe = failure.probe, now < probe { return CredentialBreaker.probePause }
        failure.probe = now + CredentialBreaker.probeTimeout
        self[topic] = failure
        return nil
    }

    /// Notes that the service refused the credential; while the pause lasts, further refusals do not count.
    ///
    /// `reason` is the service's word, `since` the time of the refusal, to be shown, `share` the random jitter, 0 to 1.
    /// - Returns: The rest of the pause, and whether the breaker was closed before.
    package mutating func refused(
        _ topic: Topic,
        _ reason: String,
        since: WallTime,
        at now: ContinuousClock.Instant,
        share: Double
    ) -> (pause: Duration, isNew: Bool) {
        func end(_ failures: Int) -> ContinuousClock.Instant {
            now + min(backOff.pause(after: failures, share: share), CredentialBreaker.longestPause)
        }
        guard var failure = self[topic] else {
            let failure = Failure(reason: reason, since: since, until: end(1))
            self[topic] = failure
            return (failure.until - now, true)
        }
        if now >= failure.until {
            failure.count += 1
            failure.until = end(failure.count)
            failure.probe = nil
            self[topic] = failure
        }
        return (failure.until - now, false)
    }

    /// Notes an answer that shows that the service accepts the credential.
    /// - Returns: Whether the breaker was open.
    package mutating func accepted(_ topic: Topic) -> Bool {
        guard !known.isEmpty || others != nil, self[topic] != nil else { return false }
        self[topic] = nil
        return true
    }

    /// Notes a row without such an answer; if it was the probe, the next row is.
    package mutating func unanswered(_ topic: Topic, at now: ContinuousClock.Instant) {
        guard !known.isEmpty || others != nil, var failure = self[topic], now >= failure.until else { return }
        failure.probe = nil
        failure.until = now + CredentialBreaker.probePause
        self[topic] = failure
    }

    private subscript(topic: Topic) -> Failure? {
        get {
            if known.isEmpty, others == nil { return nil }
            return known[topic] ?? (known.count < CredentialBreaker.maximumTopics ? nil : others)
        }
        set {
            if known[topic] != nil || known.count < CredentialBreaker.maximumTopics {
                known[topic] = newValue
                if known.count < CredentialBreaker.maximumTopics { others = nil }
            } else {
                others = newValue
            }
        }
    }
}
