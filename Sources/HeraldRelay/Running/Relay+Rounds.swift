import CoreMetrics
import HeraldModel
import HeraldProvider
import Logging
import Synchronization

extension Relay {
    /// Looks again and again at how the queue stands.
    func measure() async {
        var last: Int64 = 0
        while !Task.isCancelled {
            do {
                try await look()
                try await settleAbandoned(&last)
            } catch {
                // The end is no failure.
                if !Task.isCancelled { health.lookFailure("\(error)") }
            }
            guard (try? await Task.sleep(for: configuration.progressPause)) != nil else { return }
        }
    }

    /// Looks once.
    func look() async throws {
        let known = brake.withLock { $0.kept }
        let progress = try await store.progress(at: clock.now())
        follow(progress.brakes, known)
        for alarm in brake.withLock({ $0.unkept }) { try await keep(alarm) }
        let routes = routes.routes
        health.stands(
            progress,
            problems: routes.flatMap(\.credentialTroubles),
            troubles: routes.compactMap { $0.trouble(at: clock.now()) } + routes.compactMap(\.journalTrouble)
        )
        metrics.show(progress)
    }

    /// Does with the brakes as the database says.
    private func follow(_ found: [QueueProgress.Brake], _ known: [DeathBrake.Alarm]) {
        let alarms = found.map { brake in
            DeathBrake.Alarm(
                app: brake.app,
                deaths: brake.deaths,
                answers: brake.answers,
                since: WallTime(rfc3339: brake.since) ?? clock.now()
            )
        }
        let (on, off) = brake.withLock { $0.follow(alarms, known: known) }
        for alarm in on { logger.critical("tokens are no more marked dead", metadata: ["why": "\(alarm.words)"]) }
        for alarm in off { logger.notice("tokens are marked dead again", metadata: ["app": "\(alarm.app)"]) }
        showBrakes()
    }

    /// Keeps a brake in the database, so that it is on until an operator takes it off.
    func keep(_ alarm: DeathBrake.Alarm) async throws {
        try await store.keep(alarm)
        brake.withLock { $0.isKept(alarm) }
    }

    func showBrakes() {
        let alarms = brake.withLock { $0.alarms }
        health.brakes(alarms)
        metrics.brakes.record(alarms.count)
    }

    /// Makes rows for many tokens final of which somebody deleted the last part.
    private func settleAbandoned(_ last: inout Int64) async throws {
        let (finished, next) = try await store.settle(after: last)
        last = next ?? 0
        for row in finished {
            metrics.count(row.status)
            logger.notice(
                "push",
                metadata: ["row": "\(row.row)", "outcome": "\(row.status.rawValue)", "reason": "parts were deleted"]
            )
        }
    }

    /// Reads the feedback service of each app that has one, again and again.
    func readFeedbacks() async {
        while !Task.isCancelled {
            for route in routes.routes { await readFeedback(route) }
            guard (try? await Task.sleep(for: configuration.feedbackPause)) != nil else { return }
        }
    }

    private func readFeedback(_ route: Route) async {
        let app = route.app
        guard let place = app.feedback, case .certificate = app.credential else { return }
        let label = "\(app.topics.first ?? "every topic") (\(app.environment.rawValue))"
        // What is read is forgotten there: while the brake is on, the list stays where it is.
        guard !health.isBraked(label) else { return }
        let connection = ProviderConfiguration(
            host: place.host,
            port: place.port,
            credential: app.providerCredential,
            authorities: app.authorities
        )
        let entries = FeedbackList()
        do {
            try await HeraldProvider.readFeedback(connection) { entries.add($0) }
        } catch {
            logger.warning(
                "the feedback service was not read to the end",
                metadata: ["service": "\(place)", "error": "\(error)"]
            )
        }
        let deaths = entries.all.flatMap { entry in
            app.topics.map { topic in
                Death(token: entry.tokenHex, topic: topic, time: entry.time, evidence: "feedback of \(place)")
            }
        }
        guard !deaths.isEmpty else { return }
        logger.notice("feedback read", metadata: ["service": "\(place)", "tokens": "\(entries.all.count)"])
        var devices = 0
        if let progress = try? await store.progress(at: clock.now()) { devices = progress.devices }
        // Of a list the measure is how many tokens there are.
        await noteDeaths(app: label, answers: max(devices, deaths.count), deaths: deaths)
    }
}
