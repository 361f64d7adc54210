import HeraldModel
import HeraldProvider
import Logging

extension Relay {
    /// Looks again and again at how the queue stands.
    func measure() async {
        while !Task.isCancelled {
            do {
                let progress = try await store.progress(at: clock.now())
                health.stands(progress, troubles: routes.routes.compactMap { $0.trouble(at: clock.now()) })
                metrics.show(progress)
            } catch {
                // The end is no failure.
                if !Task.isCancelled { health.storeFailure("\(error)") }
            }
            guard (try? await Task.sleep(for: configuration.progressPause)) != nil else { return }
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
