import HeraldModel
import HeraldProvider
import Logging
import Synchronization

/// Reads the feedback services of the apps at intervals, and marks the dead tokens.
struct FeedbackPoll: Sendable {
    let context: RelayContext
    let deadTokens: DeadTokenMarker

    func run() async {
        // The service deletes what was read, so a list is read only after the one before is marked.
        var unmarked: [RowOutcome.DeadTokenReport] = []
        while !Task.isCancelled {
            for route in context.routes.all {
                unmarked = await deadTokens.mark(unmarked)
                guard unmarked.isEmpty else { break }
                unmarked = await deadTokens.mark(await read(route.app))
            }
            guard (try? await Task.sleep(for: context.configuration.feedbackPause)) != nil else { return }
        }
    }

    /// - Returns: The dead tokens of the app's list.
    func read(_ app: RelayApp) async -> [RowOutcome.DeadTokenReport] {
        guard let service = app.feedback, case .certificate = app.credential.kind else { return [] }
        // An open breaker leaves the list unread, as does a database that does not work. The list does not say which of
        // the app's topics a token belongs to, so one of their breakers is enough.
        guard !context.health.hasOpenBreaker(app) else { return [] }
        let devices: Int
        do {
            devices = try await context.store.progress(at: context.clock.now()).devices
        } catch {
            context.logger.warning(
                "the feedback list stays unread, as the database does not work",
                metadata: ["service": "\(service)", "error": "\(error)"]
            )
            return []
        }
        var connection = ProviderConfiguration(
            host: service.host,
            port: service.port,
            credential: app.credential,
            authorities: app.authorities
        )
        connection.proxy = app.proxy
        // Entries read before an error count, too.
        let read = Mutex<[FeedbackEntry]>([])
        do {
            try await readFeedback(connection) { entry in read.withLock { $0.append(entry) } }
        } catch {
            context.logger.warning(
                "could not read the feedback list to its end",
                metadata: ["service": "\(service)", "error": "\(error)"]
            )
        }
        let entries = read.withLock { $0 }
        guard !entries.isEmpty else { return [] }
        context.logger.notice(
            "feedback read",
            metadata: ["service": "\(service)", "tokens": "\(entries.count)"]
        )
        return reports(entries, of: app, from: "feedback of \(service)", devices: devices)
    }

    /// Counts the entries of a list for each topic of the app, and judges them by its breaker.
    func reports(
        _ entries: [FeedbackEntry],
        of app: RelayApp,
        from evidence: String,
        devices: Int
    ) -> [RowOutcome.DeadTokenReport] {
        // For a list, the number of registered tokens stands for the number of answers.
        let answers = max(devices, entries.count)
        return app.topics.flatMap { topic in
            let isHeld = deadTokens.note(app: app.breaker(of: topic), answers: answers, deadTokens: entries.count)
            return entries.map { entry in
                let token = DeadToken(token: entry.tokenHex, topic: topic, time: entry.time, evidence: evidence)
                return RowOutcome.DeadTokenReport(token: token, isHeld: isHeld)
            }
        }
    }
}
