import CoreMetrics
import HeraldModel
import HeraldProvider
import Logging

/// Processes one claimed row: looks it up, plans it, sends it, and returns its outcome.
struct RowSender: Sendable {
    /// Result of a journal lookup for a row that may have been sent.
    enum LookupResult {
        /// The outcome to write.
        case settled(RowOutcome)
        /// The service did not accept it.
        case notAccepted
        /// There is no journal for it.
        case unknown
    }

    /// Minimum number of lookups, with growing pauses, before a journal without a result counts as an answer.
    private static let leastLookups = 8

    private let context: RelayContext
    private let deadTokens: DeadTokenMarker

    private var configuration: RelayConfiguration { context.configuration }
    private var clock: any WallClock { context.clock }

    init(_ context: RelayContext, _ deadTokens: DeadTokenMarker) {
        self.context = context
        self.deadTokens = deadTokens
    }

    /// Processes a row.
    /// - Returns: The outcome to write; nil if it is already written, or if the claim is to expire.
    func process(_ row: QueueRow) async -> RowOutcome? {
        let reader = RowReader(longestLife: configuration.rules.longestLife)
        var row = row
        if row.isUncertain {
            switch await lookUp(row, reader) {
            case .settled(let outcome): return outcome
            case .notAccepted: row.isUncertain = false
            case .unknown: break
            }
        }
        let now = clock.now()
        do {
            switch try await plan(row, reader, at: now) {
            case .final(let status, let reason): return final(row, status, reason: reason)
            case .wait(let moment): return later(row, at: moment, uncertain: row.isUncertain)
            case .fanOut(let tokens): return try await fanOut(row, to: tokens)
            case .audience(let user, let topic):
                let tokens = try await context.store.tokens(of: user, topic: topic, limit: RowReader.maximumTokens)
                guard !tokens.isEmpty else { return final(row, .refused, reason: "NoDevice") }
                return try await fanOut(row, to: tokens)
            case .template: return final(row, .refused, reason: RowError.badTemplate.reason)
            case .send(let prepared):
                guard !row.isUncertain || configuration.inDoubt.repeats(prepared.request) else {
                    return final(row, .failed, reason: RowOutcome.inDoubt)
                }
                return await send(row, prepared, at: now)
            }
        } catch {
            return later(row, at: now + .seconds(5), reason: "Store", uncertain: row.isUncertain)
        }
    }

    // MARK: - Lookup

    /// Looks up a row that may have been sent.
    ///
    /// This comes first, so that a row that was sent is recorded as sent even if its time is over or its device is
    /// gone.
    func lookUp(_ row: QueueRow, _ reader: RowReader) async -> LookupResult {
        guard let target = reader.target(of: row),
            let route = context.routes.table.route(
                topic: target.topic,
                environment: target.environment ?? configuration.environment,
                service: target.service
            ),
            let journal = route.journal
        else { return .unknown }
        let now = clock.now()
        let deadline = (try? reader.deadline(of: row, at: now)) ?? now
        // If the service is unreachable, its journal most likely is too. At the deadline it is tried all the same.
        if let moment = route.openUntil(at: now), now < deadline {
            return .settled(lookUpLater(row, at: min(moment, deadline), reason: "Unreachable", lookups: row.lookups))
        }
        let result = await journal.result(of: target.id, since: reader.queued(row) ?? WallTime(milliseconds: 0))
        context.noteJournal(result, of: route)
        let isEarly = row.lookups < Self.leastLookups
        switch result {
        case .accepted:
            context.metrics.resolved.increment()
            return .settled(final(row, .sent))
        case .notAccepted: return .notAccepted
        case .pending:
            // A service that received it and records nothing for minutes lost it in a crash.
            guard isEarly else { return .unknown }
        case .unavailable:
            // An unavailable journal never causes a second send, but is not asked for ever either.
            guard isEarly || now < deadline else { return .settled(final(row, .expired, reason: RowOutcome.inDoubt)) }
        }
        let next = clock.now() + configuration.rules.backOff.pause(after: row.lookups + 1, share: .random(in: 0...1))
        let moment = now < deadline ? min(next, deadline) : next
        return .settled(lookUpLater(row, at: moment, reason: RowOutcome.inDoubt, lookups: row.lookups + 1))
    }

    // MARK: - Content

    private func plan(_ row: QueueRow, _ reader: RowReader, at now: WallTime) async throws -> RowPlan {
        let plan = reader.plan(row, at: now)
        guard case .template(let name) = plan else { return plan }
        let texts = try await context.store.template(name)
        guard let text = LanguageList.pick(row.device?.languages ?? [], from: texts) else {
            return .final(.refused, reason: texts.isEmpty ? "UnknownTemplate" : "NoLanguage")
        }
        do throws(TemplateText.Failure) {
            guard row[.parameters].bytes.map({ $0.count <= QueueColumn.parameters.limit }) ?? true else {
                throw .badParameters
            }
            let payload = try TemplateText.fill(text, try TemplateText.parameters(row[.parameters].bytes))
            return reader.plan(row, at: now, payload: payload)
        } catch {
            return .final(.refused, reason: error.rawValue)
        }
    }

    private func fanOut(_ row: QueueRow, to tokens: [String]) async throws -> RowOutcome? {
        try await context.store.fanOut(row.id, to: tokens, owner: context.owner)
        log(row, "fanned out", reason: "to \(tokens.count) tokens", level: .info)
        context.signal.notify()
        return nil
    }

    // MARK: - Sending

    private func send(_ row: QueueRow, _ prepared: PreparedRow, at now: WallTime) async -> RowOutcome {
        let environment = prepared.environment ?? configuration.environment
        let table = context.routes.table
        guard let route = table.route(topic: prepared.topic, environment: environment, service: prepared.service) else {
            return final(row, .failed, reason: "NoCredential")
        }
        if let moment = route.openUntil(at: now) {
            guard moment < prepared.deadline else {
                return final(row, .expired, reason: route.problem == nil ? nil : "Unreachable")
            }
            return later(row, at: moment, reason: "Unreachable", uncertain: row.isUncertain)
        }
        if let wait = route.waitForCredential(prepared.topic, at: now) { return later(row, prepared, wait) }
        let start = ContinuousClock.now
        let result = await route.sender.send(prepared.request)
        context.metrics.sending.recordNanoseconds(RelayMetrics.nanoseconds(ContinuousClock.now - start))
        return await finish(row, prepared, by: route, with: result)
    }

    private func finish(
        _ row: QueueRow,
        _ prepared: PreparedRow,
        by route: Route,
        with result: SendResult
    ) async -> RowOutcome {
        let now = clock.now()
        route.note(result, at: now)
        let credential = route.noteCredential(result, prepared.topic, at: now)
        if let change = credential.change { logCredential(change, route, prepared.topic) }
        if let wait = credential.wait {
            context.metrics.retries.increment()
            return later(row, prepared, wait)
        }
        if case .answered(let answer) = result { await noteAnswer(answer, to: row, prepared, by: route) }
        let change = configuration.rules.change(
            after: result,
            attempts: row.attempts,
            deadline: prepared.deadline,
            now: now,
            share: .random(in: 0...1)
        )
        switch change {
        case .final(let status, let reason): return final(row, status, reason: reason)
        case .lookUp(let moment, let reason, let lookups):
            return lookUpLater(row, at: moment, reason: reason ?? RowOutcome.inDoubt, lookups: lookups)
        case .later(let moment, let reason, let uncertain, let counts):
            context.metrics.retries.increment()
            // A refusal does not tell whether an earlier attempt arrived.
            return later(row, at: moment, reason: reason, counts: counts, uncertain: uncertain || row.isUncertain)
        }
    }

    private func noteAnswer(_ answer: PushAnswer, to row: QueueRow, _ prepared: PreparedRow, by route: Route) async {
        var dead: [DeadToken] = []
        if case .refused(let refusal) = answer, RetryRules.isDeadToken(refusal) {
            dead.append(
                DeadToken(
                    token: prepared.request.token.hex,
                    topic: prepared.topic.name,
                    time: refusal.since ?? clock.now(),
                    evidence: "410 \(RetryRules.word(for: refusal)) from \(route.app.service), row \(row.id)"
                )
            )
        }
        let app = "\(prepared.topic.name) (\(route.app.environment.rawValue))"
        await deadTokens.note(app: app, answers: 1, deadTokens: dead)
    }

    // MARK: - Outcomes

    /// Outcome of a row whose credential the service refuses: it waits, because the row is not at fault.
    private func later(
        _ row: QueueRow,
        _ prepared: PreparedRow,
        _ wait: (until: WallTime, reason: String)
    ) -> RowOutcome {
        guard wait.until < prepared.deadline else { return final(row, .expired, reason: wait.reason) }
        return later(row, at: wait.until, reason: wait.reason, uncertain: row.isUncertain)
    }

    private func later(
        _ row: QueueRow,
        at moment: WallTime,
        reason: String? = nil,
        counts: Bool = false,
        uncertain: Bool = false
    ) -> RowOutcome {
        log(row, "later", reason: reason, level: counts ? .notice : .debug)
        return outcome(row, .later(moment, reason: reason, uncertain: uncertain, counts: counts))
    }

    private func lookUpLater(_ row: QueueRow, at moment: WallTime, reason: String, lookups: Int) -> RowOutcome {
        log(row, "later", reason: reason, level: .notice)
        return outcome(row, .lookUp(moment, reason: reason, lookups: lookups))
    }

    private func final(_ row: QueueRow, _ status: FinalStatus, reason: String? = nil) -> RowOutcome {
        // Whether an earlier attempt arrived stays unknown.
        let reason = status == .expired && row.isUncertain ? RowOutcome.inDoubt : reason
        log(row, status.rawValue, reason: reason, level: status == .sent ? .info : .notice)
        return outcome(row, .final(status, reason: reason))
    }

    private func outcome(_ row: QueueRow, _ change: RowOutcome.Change) -> RowOutcome {
        RowOutcome(row: row.id, parent: row.parent, change: change, time: clock.now())
    }

    private func logCredential(_ change: Route.Change, _ route: Route, _ topic: Topic) {
        var facts: Logger.Metadata = ["service": "\(route.name)", "topic": "\(topic.name)"]
        switch change {
        case .broken(let reason):
            facts["reason"] = "\(reason)"
            context.logger.error("the service refuses the credential; rows of the topic wait", metadata: facts)
        case .restored: context.logger.notice("the service accepts the credential again", metadata: facts)
        }
    }

    /// Logs the outcome of a row, never its content.
    private func log(_ row: QueueRow, _ outcome: String, reason: String?, level: Logger.Level) {
        let logger = context.logger
        guard logger.logLevel <= level else { return }
        var facts: Logger.Metadata = ["row": "\(row.id)", "outcome": "\(outcome)"]
        if let topic = row[.topic].text, let topic = Topic(topic) { facts["topic"] = "\(topic.name)" }
        if let id = row.apnsID { facts["apns-id"] = "\(id)" }
        if let reason { facts["reason"] = "\(reason)" }
        if row.attempts > 0 { facts["attempt"] = "\(row.attempts + 1)" }
        logger.log(level: level, "push", metadata: facts)
    }
}
