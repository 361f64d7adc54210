import CoreMetrics
import HeraldModel
import HeraldProvider
import Logging

extension Relay {
    /// Does what is to be done with one row.
    /// - Returns: What to write into it; nil if that is done, or if the claim is to lapse.
    func work(_ row: QueueRow) async -> RowOutcome? {
        let reader = RowReader(longestLife: configuration.rules.retry.longestLife)
        var row = row
        if row.isUncertain {
            switch await inquire(row, reader) {
            case .settled(let outcome): return outcome
            case .notTaken: row.isUncertain = false
            case .unknown: break
            }
        }
        let now = clock.now()
        var plan = reader.plan(row, at: now)
        if case .template(let name) = plan {
            do {
                plan = try await filled(row, name, reader, now)
            } catch let error as TemplateText.Fault {
                plan = .final(.refused, reason: error.rawValue)
            } catch {
                return later(row, now + .seconds(5), "Store", counts: false)
            }
        }
        switch plan {
        case .final(let status, let reason): return final(row, status, reason, now)
        case .wait(let moment): return later(row, moment, nil, counts: false)
        case .spread(let tokens): return await spread(row, tokens, now)
        case .audience(let user, let topic):
            do {
                let tokens = try await store.tokens(of: user, topic: topic, limit: RowReader.maximumTokens)
                guard !tokens.isEmpty else { return final(row, .refused, "NoDevice", now) }
                return await spread(row, tokens, now)
            } catch {
                return later(row, now + .seconds(5), "Store", counts: false)
            }
        case .template: return final(row, .refused, RowFault.badTemplate.reason, now)
        case .send(let order): return await send(row, order, now)
        }
    }

    private func filled(_ row: QueueRow, _ name: String, _ reader: RowReader, _ now: WallTime) async throws -> RowPlan {
        let texts = try await store.template(name)
        guard let text = LanguageList.pick(row.device?.languages ?? [], from: texts) else {
            return .final(.refused, reason: texts.isEmpty ? "UnknownTemplate" : "NoLanguage")
        }
        guard row[.parameters].bytes.map({ $0.count <= QueueColumn.parameters.limit }) ?? true else {
            throw TemplateText.Fault.badParameters
        }
        let payload = try TemplateText.fill(text, try TemplateText.parameters(row[.parameters].bytes))
        return reader.plan(row, at: now, payload: payload)
    }

    private func spread(_ row: QueueRow, _ tokens: [String], _ now: WallTime) async -> RowOutcome? {
        do {
            try await store.spread(row.id, to: tokens, owner: owner)
            report(row, "spread", reason: "to \(tokens.count) tokens", level: .info)
            wake()
            return nil
        } catch {
            return later(row, now + .seconds(5), "Store", counts: false)
        }
    }

    private func send(_ row: QueueRow, _ order: RowOrder, _ now: WallTime) async -> RowOutcome? {
        let environment = order.environment ?? configuration.environment
        guard let route = routes.route(topic: order.topic, environment: environment, service: order.service) else {
            return final(row, .failed, "NoCredential", now)
        }
        if let moment = route.wait(at: now) {
            guard moment < order.deadline else {
                return final(row, .expired, route.trouble(at: now) == nil ? nil : "Unreachable", now)
            }
            return later(row, moment, "Unreachable", counts: false, uncertain: row.isUncertain)
        }
        if let wait = route.waitForCredential(order.topic, at: now) { return rest(row, order, wait, now) }
        let start = ContinuousClock.now
        let result = await route.sender.send(order.request)
        metrics.sending.recordNanoseconds(RelayMetrics.nanoseconds(ContinuousClock.now - start))
        return await settle(row, order, route, result)
    }

    private func settle(_ row: QueueRow, _ order: RowOrder, _ route: Route, _ result: SendResult) async -> RowOutcome? {
        let now = clock.now()
        route.note(result, at: now)
        let credential = route.noteCredential(result, order.topic, at: now)
        if let change = credential.change { noteCredential(change, route, order.topic) }
        if let wait = credential.wait {
            metrics.retries.increment()
            return rest(row, order, wait, now)
        }
        let app = "\(order.topic.name) (\(route.app.environment.rawValue))"
        if case .answered(let answer) = result {
            var deaths: [Death] = []
            if case .refused(let refusal) = answer, AnswerRules.isDeath(refusal) {
                deaths.append(
                    Death(
                        token: order.request.token.hex,
                        topic: order.topic.name,
                        time: refusal.since ?? now,
                        evidence: "410 \(AnswerRules.word(for: refusal)) from \(route.app.service), row \(row.id)"
                    )
                )
            }
            await noteDeaths(app: app, answers: 1, deaths: deaths)
        }
        let change = configuration.rules.change(
            after: result,
            attempts: row.attempts,
            deadline: order.deadline,
            now: now,
            share: .random(in: 0...1)
        )
        switch change {
        case .final(let status, let reason): return final(row, status, reason, now)
        case .ask(let moment, let reason, let questions):
            return ask(row, moment, reason ?? "Uncertain", questions: questions)
        case .later(let moment, let reason, let uncertain, let counts):
            metrics.retries.increment()
            // What an earlier try left open, a refusal of this one does not settle.
            return later(row, moment, reason, counts: counts, uncertain: uncertain || row.isUncertain)
        }
    }

    /// What becomes of a row whose credential is not accepted: it waits, since it is not the row that is wrong.
    private func rest(
        _ row: QueueRow,
        _ order: RowOrder,
        _ wait: (until: WallTime, reason: String),
        _ now: WallTime
    ) -> RowOutcome {
        guard wait.until < order.deadline else { return final(row, .expired, wait.reason, now) }
        return later(row, wait.until, wait.reason, counts: false, uncertain: row.isUncertain)
    }

    private func noteCredential(_ change: Route.Change, _ route: Route, _ topic: Topic) {
        var facts: Logger.Metadata = ["service": "\(route.name)", "topic": "\(topic.name)"]
        switch change {
        case .broken(let reason):
            facts["reason"] = "\(reason)"
            logger.error("the service does not accept the credential; rows of the topic wait", metadata: facts)
        case .mended: logger.notice("the service accepts the credential", metadata: facts)
        }
    }

    func final(_ row: QueueRow, _ status: FinalStatus, _ reason: String?, _ now: WallTime) -> RowOutcome {
        report(row, status.rawValue, reason: reason, level: status == .sent ? .info : .notice)
        return RowOutcome(row: row.id, parent: row.parent, change: .final(status, reason: reason), time: now)
    }

    /// A row that may have been sent, and of which nobody could say so yet.
    func ask(_ row: QueueRow, _ moment: WallTime, _ reason: String, questions: Int) -> RowOutcome {
        report(row, "later", reason: reason, level: .notice)
        return RowOutcome(
            row: row.id,
            parent: row.parent,
            change: .ask(moment, reason: reason, questions: questions),
            time: clock.now()
        )
    }

    func later(
        _ row: QueueRow,
        _ moment: WallTime,
        _ reason: String?,
        counts: Bool,
        uncertain: Bool = false
    ) -> RowOutcome {
        report(row, "later", reason: reason, level: counts ? .notice : .debug)
        return RowOutcome(
            row: row.id,
            parent: row.parent,
            change: .later(moment, reason: reason, uncertain: uncertain, counts: counts),
            time: clock.now()
        )
    }

    /// The line that the log has for a row: what became of which, never what is in it.
    private func report(_ row: QueueRow, _ outcome: String, reason: String?, level: Logger.Level) {
        guard logger.logLevel <= level else { return }
        var facts: Logger.Metadata = ["row": "\(row.id)", "outcome": "\(outcome)"]
        if let topic = row[.topic].text, let topic = Topic(topic) { facts["topic"] = "\(topic.name)" }
        if let id = row.apnsID { facts["apns-id"] = "\(id)" }
        if let reason { facts["reason"] = "\(reason)" }
        if row.attempts > 0 { facts["attempt"] = "\(row.attempts + 1)" }
        logger.log(level: level, "push", metadata: facts)
    }
}
