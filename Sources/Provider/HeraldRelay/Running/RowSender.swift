import CoreMetrics
import HeraldModel
import HeraldProvider
import Logging
import Metrics

/// Processes claimed rows: looks them up, plans them, sends them, and reports their outcomes.
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

    /// A row that is ready to be sent.
    private struct Order: Sendable {
        let row: QueueRow
        let prepared: PreparedRow
        let route: Route
        /// Topic and environment, for the circuit breaker of dead tokens.
        let app: String
    }

    /// Result of the first look at a row.
    private enum Beginning {
        /// The outcome to write; nil if it is already written, or if the claim is to expire.
        case ended(RowOutcome?)
        case sends(Order)
        /// The journal or the queue must be asked first.
        case asks
    }

    let deadTokens: DeadTokenMarker
    private let context: RelayContext

    private var configuration: RelayConfiguration { context.configuration }
    private var clock: any WallClock { context.clock }

    init(_ context: RelayContext, _ deadTokens: DeadTokenMarker) {
        self.context = context
        self.deadTokens = deadTokens
    }

    /// Processes claimed rows, and returns after the last one.
    ///
    /// The rows of one service are handed over together, since a task for each row would cost more than sending it.
    /// `report` receives each row once, with the outcome to write; nil if it is already written, or if the claim is to
    /// expire. It must not wait.
    func process(_ rows: [QueueRow], report: @escaping @Sendable (QueueRow, RowOutcome?) -> Void) async {
        let reader = RowReader(longestLife: configuration.rules.longestLife)
        let routes = context.routes.all
        await withDiscardingTaskGroup { group in
            var orders: [ObjectIdentifier: [Order]] = [:]
            for row in rows {
                switch begin(row, reader, routes) {
                case .ended(let outcome): report(row, outcome)
                case .sends(let order): orders[ObjectIdentifier(order.route), default: []].append(order)
                case .asks:
                    group.addTask {
                        switch await ask(row, reader) {
                        case .ended(let outcome): report(row, outcome)
                        case .sends(let order): await send([order], report)
                        case .asks: report(row, nil)
                        }
                    }
                }
            }
            for orders in orders.values {
                group.addTask { await send(orders, report) }
            }
        }
    }

    /// Plans a row that needs nothing but its own content.
    private func begin(_ row: QueueRow, _ reader: RowReader, _ routes: [Route]) -> Beginning {
        guard !row.isUncertain else { return .asks }
        let now = clock.now()
        switch reader.plan(row, at: now) {
        case .final(let status, let error): return .ended(final(row, status, error))
        case .wait(let moment): return .ended(later(row, at: moment))
        case .send(let prepared): return order(row, prepared, routes, at: now)
        case .fanOut, .devices, .template: return .asks
        }
    }

    /// Plans a row with the help of the journal and the queue.
    private func ask(_ row: QueueRow, _ reader: RowReader) async -> Beginning {
        var row = row
        if row.isUncertain {
            switch await lookUp(row, reader) {
            case .settled(let outcome): return .ended(outcome)
            case .notAccepted: row.isUncertain = false
            case .unknown: break
            }
        }
        let now = clock.now()
        do {
            switch try await plan(row, reader, at: now) {
            case .final(let status, let error): return .ended(final(row, status, error))
            case .wait(let moment): return .ended(later(row, at: moment, uncertain: row.isUncertain))
            case .fanOut(let tokens): return .ended(try await fanOut(row, to: tokens))
            case .devices(let user, let topic):
                let tokens = try await context.store.tokens(of: user, topic: topic, limit: RowReader.maximumTokens)
                guard !tokens.isEmpty else {
                    let detail = "`devices` has no live token of user_name \(user.debugDescription) for \(topic)"
                    return .ended(final(row, .refused, RowError(.noDevice, detail)))
                }
                return .ended(try await fanOut(row, to: tokens))
            case .template: return .ended(final(row, .refused, RowError(.badTemplate)))
            case .send(let prepared):
                guard !row.isUncertain || configuration.inDoubt.repeats(prepared.request) else {
                    return .ended(final(row, .failed, RowError(.uncertain)))
                }
                return order(row, prepared, context.routes.all, at: now)
            }
        } catch {
            return .ended(later(row, at: now + .seconds(5), RowError(.store), uncertain: row.isUncertain))
        }
    }

    // MARK: - Lookup

    /// Looks up a row that may have been sent.
    ///
    /// This comes first, so that a row that was sent is recorded as sent even if its time is over or its device is
    /// gone.
    func lookUp(_ row: QueueRow, _ reader: RowReader) async -> LookupResult {
        guard let target = reader.target(of: row),
            let route = context.routes.all.route(
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
            return .settled(lookUpLater(row, at: min(moment, deadline), .unreachable, lookups: row.lookups))
        }
        // Not `send_after`, which may have been moved since it was sent.
        let queued = (try? row.moment(.timeQueued, at: now)) ?? WallTime(milliseconds: 0)
        let result = await journal.result(of: target.id, since: queued)
        context.noteJournal(result, of: route)
        let isEarly = row.lookups < Self.leastLookups
        switch result {
        case .accepted:
            context.metrics.resolved.increment()
            return .settled(final(row, .sent))
        case .notAccepted: return .notAccepted
        // No later answer says more.
        case .forgotten: return .unknown
        case .pending:
            // A service that received it and records nothing for minutes lost it in a crash.
            guard isEarly else { return .unknown }
        case .unavailable:
            // An unavailable journal never causes a second send, but is not asked for ever either.
            guard isEarly || now < deadline else { return .settled(final(row, .expired, RowError(.uncertain))) }
        }
        let next = clock.now() + configuration.rules.backOff.pause(after: row.lookups + 1, share: .random(in: 0...1))
        let moment = now < deadline ? min(next, deadline) : next
        return .settled(lookUpLater(row, at: moment, .uncertain, lookups: row.lookups + 1))
    }

    // MARK: - Content

    private func plan(_ row: QueueRow, _ reader: RowReader, at now: WallTime) async throws -> RowPlan {
        let plan = reader.plan(row, at: now)
        guard case .template(let name) = plan else { return plan }
        let texts = try await context.store.template(name)
        guard let text = LanguageList.pick(row.device?.languages ?? [], from: texts) else {
            return .final(.refused, Self.missing(name, languages: texts.isEmpty ? nil : row.device?.languages ?? []))
        }
        do throws(TemplateText.Failure) {
            guard row[.parameters].bytes.map({ $0.count <= QueueColumn.parameters.limit }) ?? true else {
                throw .badParameters
            }
            let payload = try TemplateText.fill(text, try TemplateText.parameters(row[.parameters].bytes))
            return reader.plan(row, at: now, payload: payload)
        } catch {
            switch error {
            case .badParameters: return .final(.refused, RowError(.badParameters))
            case .badTemplate:
                let detail =
                    "the text of the template \(name.debugDescription) is not JSON: put `{{…}}` in quotation marks"
                return .final(.refused, RowError(.badTemplate, detail))
            case .missingParameter(let parameter):
                let detail = "`parameters` lacks `\(parameter)`, which the template \(name.debugDescription) names"
                return .final(.refused, RowError(.missingParameter, detail))
            }
        }
    }

    /// The error for a template that has no text for a device; with `languages`, it has some in other languages.
    private static func missing(_ template: String, languages: [String]?) -> RowError {
        let template = template.debugDescription
        guard let languages else { return RowError(.unknownTemplate, "`push_templates` has no template \(template)") }
        let known = languages.isEmpty ? "none" : languages.joined(separator: ", ")
        let detail = "the template \(template) has no text in the device's languages (\(known)), nor in the language ''"
        return RowError(.noLanguage, detail)
    }

    private func fanOut(_ row: QueueRow, to tokens: [String]) async throws -> RowOutcome? {
        try await context.store.fanOut(row.id, to: tokens, owner: context.owner)
        log(row, "fanned out", reason: "to \(tokens.count) tokens", level: .info)
        context.signal.notify()
        return nil
    }

    // MARK: - Sending

    /// Finds the service of a row.
    private func order(_ row: QueueRow, _ prepared: PreparedRow, _ routes: [Route], at now: WallTime) -> Beginning {
        let environment = prepared.environment ?? configuration.environment
        guard let route = routes.route(topic: prepared.topic, environment: environment, service: prepared.service)
        else {
            let service = prepared.service.map { " at the service \($0.debugDescription)" } ?? ""
            let detail = "none of `apps` has \(prepared.topic.name) in \(environment.rawValue)\(service)"
            return .ended(final(row, .failed, RowError(.noCredential, detail)))
        }
        if let moment = route.openUntil(at: now) {
            guard moment < prepared.deadline else {
                return .ended(final(row, .expired, RowError(.unreachable, route.problem)))
            }
            return .ended(later(row, at: moment, RowError(.unreachable, route.problem), uncertain: row.isUncertain))
        }
        if let wait = route.waitForCredential(prepared.topic, at: now) { return .ended(later(row, prepared, wait)) }
        let app = route.app.breaker(of: prepared.topic.name)
        return .sends(Order(row: row, prepared: prepared, route: route, app: app))
    }

    /// Sends rows through one service.
    private func send(_ orders: [Order], _ report: @escaping @Sendable (QueueRow, RowOutcome?) -> Void) async {
        guard let route = orders.first?.route else { return }
        let start = ContinuousClock.now
        await route.sender.send(orders.map(\.prepared.request)) { index, result in
            context.metrics.sending.record(duration: ContinuousClock.now - start)
            report(orders[index].row, finish(orders[index], with: result))
        }
    }

    private func finish(_ order: Order, with result: SendResult) -> RowOutcome {
        let (row, prepared, route) = (order.row, order.prepared, order.route)
        let now = clock.now()
        route.note(result)
        let credential = route.noteCredential(result, prepared.topic, at: now)
        if let change = credential.change { logCredential(change, route, prepared.topic) }
        if let wait = credential.wait {
            context.metrics.retries.increment()
            return later(row, prepared, wait)
        }
        var outcome = outcome(of: result, row, prepared, at: now)
        if case .answered(let answer) = result { outcome.deadToken = noteAnswer(answer, to: order) }
        return outcome
    }

    private func outcome(
        of result: SendResult,
        _ row: QueueRow,
        _ prepared: PreparedRow,
        at now: WallTime
    ) -> RowOutcome {
        let change = configuration.rules.change(
            after: result,
            attempts: row.attempts,
            deadline: prepared.deadline,
            now: now,
            share: .random(in: 0...1)
        )
        switch change {
        case .final(let status, let reason): return final(row, status, reason: reason, detail: result.error?.detail)
        case .lookUp(let moment, _, let lookups): return lookUpLater(row, at: moment, .uncertain, lookups: lookups)
        case .later(let moment, let reason, var uncertain, let counts):
            context.metrics.retries.increment()
            // A refusal does not tell whether an earlier attempt arrived.
            uncertain = uncertain || row.isUncertain
            let detail = result.error?.detail
            return later(row, at: moment, reason: reason, detail: detail, counts: counts, uncertain: uncertain)
        }
    }

    /// Counts an answer.
    /// - Returns: The token, if it is dead.
    private func noteAnswer(_ answer: PushAnswer, to order: Order) -> RowOutcome.DeadTokenReport? {
        guard case .refused(let refusal) = answer, RetryRules.isDeadToken(refusal) else {
            _ = deadTokens.note(app: order.app, answers: 1, deadTokens: 0)
            return nil
        }
        let token = DeadToken(
            token: order.prepared.request.token.hex,
            topic: order.prepared.topic.name,
            time: refusal.since ?? clock.now(),
            evidence: "410 \(RetryRules.word(for: refusal)) from \(order.route.app.service), row \(order.row.id)"
        )
        return RowOutcome.DeadTokenReport(
            token: token,
            isHeld: deadTokens.note(app: order.app, answers: 1, deadTokens: 1)
        )
    }

    // MARK: - Outcomes

    /// Outcome of a row whose credential the service refuses: it waits, because the row is not at fault.
    private func later(
        _ row: QueueRow,
        _ prepared: PreparedRow,
        _ wait: (until: WallTime, reason: String)
    ) -> RowOutcome {
        let detail = wait.reason == RowReason.badCredential.rawValue ? RowReason.badCredential.meaning : nil
        guard wait.until < prepared.deadline else { return final(row, .expired, reason: wait.reason, detail: detail) }
        return later(row, at: wait.until, reason: wait.reason, detail: detail, uncertain: row.isUncertain)
    }

    private func later(
        _ row: QueueRow,
        at moment: WallTime,
        _ error: RowError? = nil,
        uncertain: Bool = false
    ) -> RowOutcome {
        later(row, at: moment, reason: error?.reason.rawValue, detail: error?.detail, uncertain: uncertain)
    }

    private func later(
        _ row: QueueRow,
        at moment: WallTime,
        reason: String?,
        detail: String?,
        counts: Bool = false,
        uncertain: Bool = false
    ) -> RowOutcome {
        log(row, "later", reason: reason, level: counts ? .notice : .debug)
        return outcome(row, .later(moment, reason: reason, uncertain: uncertain, counts: counts), detail: detail)
    }

    private func lookUpLater(_ row: QueueRow, at moment: WallTime, _ reason: RowReason, lookups: Int) -> RowOutcome {
        log(row, "later", reason: reason.rawValue, level: .notice)
        let change = RowOutcome.Change.lookUp(moment, reason: reason.rawValue, lookups: lookups)
        return outcome(row, change, detail: reason.meaning)
    }

    private func final(_ row: QueueRow, _ status: FinalStatus, _ error: RowError? = nil) -> RowOutcome {
        final(row, status, reason: error?.reason.rawValue, detail: error?.detail)
    }

    private func final(_ row: QueueRow, _ status: FinalStatus, reason: String?, detail: String?) -> RowOutcome {
        // Whether an earlier attempt arrived stays unknown.
        let isInDoubt = status == .expired && row.isUncertain
        let reason = isInDoubt ? RowOutcome.inDoubt : reason
        log(row, status.rawValue, reason: reason, level: status == .sent ? .info : .notice)
        return outcome(row, .final(status, reason: reason), detail: isInDoubt ? RowReason.uncertain.meaning : detail)
    }

    private func outcome(_ row: QueueRow, _ change: RowOutcome.Change, detail: String?) -> RowOutcome {
        var outcome = RowOutcome(of: row, change, at: clock.now())
        outcome.detail = detail
        return outcome
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
