import HeraldModel
import Logging

/// Probes journals that were never used, or that failed, so that an operator learns of a wrong address or token before a
/// row depends on it.
struct JournalMonitor: Sendable {
    let context: RelayContext

    func run() async {
        while !Task.isCancelled {
            for route in context.routes.all where route.needsJournalProbe() {
                guard let journal = route.journal else { continue }
                let unused = NotificationID(high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max))
                let result = await journal.result(of: unused, since: context.clock.now() + .seconds(86_400))
                // A shutdown is not a failure.
                if !Task.isCancelled { context.noteJournal(result, of: route) }
            }
            guard (try? await Task.sleep(for: context.configuration.progressPause)) != nil else { return }
        }
    }
}

extension RelayContext {
    /// Notes the result of a journal lookup, and logs a change.
    func noteJournal(_ result: JournalResult, of route: Route) {
        guard let change = route.noteJournal(result) else { return }
        let facts: Logger.Metadata = [
            "service": "\(route.name)", "console": "\(route.app.journal?.console ?? "")",
        ]
        switch change {
        case .broken(let why):
            logger.error(
                "the journal is unavailable; rows that may have been sent wait",
                metadata: facts.merging(["why": "\(why)"]) { $1 }
            )
        case .restored: logger.notice("the journal is available again", metadata: facts)
        }
    }
}
