import HeraldModel
import HeraldProvider
import Synchronization

/// An app's service, with the state of its connection, credential and journal.
final class Route: Sendable {
    /// A change to log.
    enum Change: Hashable {
        case broken(String)
        case restored
    }

    private struct JournalState {
        /// Last lookup; nil before the first.
        var used: ContinuousClock.Instant?
        /// Why it is unavailable; nil while it answers.
        var failure: String?
    }

    let app: RelayApp
    let sender: any RelaySender
    let journal: (any JournalLookup)?
    private let breaker: Mutex<CircuitBreaker>
    private let credential: Mutex<CredentialBreaker>
    private let journalState = Mutex(JournalState())

    init(_ app: RelayApp, sender: any RelaySender, journal: (any JournalLookup)?, backOff: RetryBackOff) {
        self.app = app
        self.sender = sender
        self.journal = journal
        breaker = Mutex(CircuitBreaker(backOff))
        credential = Mutex(CredentialBreaker(backOff))
    }

    /// The service and app, for logs.
    var name: String { "\(app.service) (\(app.name), \(app.environment.rawValue))" }

    // MARK: - Service

    /// When a row may be sent; nil if now.
    func openUntil(at now: WallTime) -> WallTime? {
        breaker.withLock { $0.pause(at: .now) }.map { now + $0 }
    }

    func note(_ result: SendResult) {
        breaker.withLock { breaker in
            switch result {
            case .answered: breaker.succeeded()
            case .notSent(let error): breaker.failed(error.description, at: .now, share: .random(in: 0...1))
            case .uncertain(let error): breaker.timedOut(error.description, at: .now, share: .random(in: 0...1))
            case .credentialRefused, .invalid, .refused: break
            }
        }
    }

    /// Why the service is not used, and what to do; nil if it is.
    var problem: String? { breaker.withLock { $0.reason }.map { "\(name): \($0)" } }

    // MARK: - Credential

    /// Notes the meaning of a result for the credential.
    /// - Returns: If the service refuses it, until when rows of the topic wait, and the reason. The change, if there is one.
    func noteCredential(
        _ result: SendResult,
        _ topic: Topic,
        at now: WallTime
    ) -> (wait: (until: WallTime, reason: String)?, change: Change?) {
        credential.withLock { credential in
            let word: String
            switch result {
            case .answered(.refused(let refusal))
            where RetryRules.isAboutCredential(refusal, isNamed: !app.topics.isEmpty):
                word = RetryRules.word(for: refusal)
            case .answered(.refused(let refusal)) where RetryRules.isTemporary(refusal):
                credential.unanswered(topic, at: .now)
                return (nil, nil)
            case .answered: return (nil, credential.accepted(topic) ? .restored : nil)
            case .credentialRefused(let error): word = error.reason.rawValue
            case .notSent, .uncertain, .invalid, .refused:
                credential.unanswered(topic, at: .now)
                return (nil, nil)
            }
            let (pause, isNew) = credential.refused(topic, word, since: now, at: .now, share: .random(in: 0...1))
            return ((now + pause, word), isNew ? .broken(word) : nil)
        }
    }

    /// Until when a row of a topic waits for the credential, and the reason; nil if it may be sent now.
    func waitForCredential(_ topic: Topic, at now: WallTime) -> (until: WallTime, reason: String)? {
        credential.withLock { credential in
            guard let pause = credential.admit(topic, at: .now) else { return nil }
            return (now + pause, credential.reason(topic) ?? "BadCredential")
        }
    }

    /// Topics for which the service refuses the credential, one line each, at most ten.
    var credentialProblems: [String] {
        let failures = credential.withLock { $0.failures }
        let lines = failures.prefix(10).map { topic, failure in
            "\(name) refuses the credential for \(topic?.name ?? "further topics") (\(failure.reason)) since "
                + "\(failure.since.rfc3339): its rows wait. Correct the credential; if its file changed, reload with SIGHUP"
        }
        return lines + (failures.count > 10 ? ["\(name): the same for \(failures.count - 10) more topics"] : [])
    }

    // MARK: - Journal

    func noteJournal(_ result: JournalResult, at now: ContinuousClock.Instant = .now) -> Change? {
        journalState.withLock { state in
            let before = state.failure
            state.used = now
            guard case .unavailable(let why) = result else {
                state.failure = nil
                return before == nil ? nil : .restored
            }
            state.failure = why
            return before == nil ? .broken(why) : nil
        }
    }

    /// Whether the journal was never used, or failed a while ago.
    func needsJournalProbe(at now: ContinuousClock.Instant = .now) -> Bool {
        journalState.withLock { state in
            guard let used = state.used else { return true }
            return state.failure != nil && now >= used + .seconds(30)
        }
    }

    /// Why the journal is unavailable; nil if it is not.
    var journalProblem: String? {
        journalState.withLock { $0.failure }.map {
            "the journal of \(name) at \(app.journal?.console ?? "its console") is unavailable (\($0)): rows that may have "
                + "been sent wait for it"
        }
    }
}

extension [Route] {
    /// The first route for a topic and environment, and for a service if that is known.
    func route(topic: Topic, environment: PushEnvironment, service: String?) -> Route? {
        first { route in
            route.app.environment == environment && route.app.includes(topic)
                && (service == nil || service == route.app.name)
        }
    }
}
