import CoreMetrics
import HeraldModel
import Logging

extension Relay {
    /// What is known of a row that may have been sent.
    enum InquiryResult {
        /// What to write into it.
        case settled(RowOutcome)
        /// The service did not take it.
        case notTaken
        /// There is no journal that could tell.
        case unknown
    }

    /// How often a journal is asked for the same notification at least, with growing pauses, before that counts for an
    /// answer.
    private static let leastQuestions = 8

    /// Asks what became of a row that may have been sent: before anything else, so that one whose time is over, or whose
    /// device has gone since, is `sent` if it was.
    func inquire(_ row: QueueRow, _ reader: RowReader) async -> InquiryResult {
        guard let way = reader.way(of: row),
            let route = routes.route(
                topic: way.topic,
                environment: way.environment ?? configuration.environment,
                service: way.service
            ),
            let inquiry = route.inquiry
        else { return .unknown }
        let now = clock.now()
        let deadline = (try? reader.deadline(of: row, at: now)) ?? now
        // A service that is away has no journal to ask either, most likely; at the end it is asked all the same.
        if let moment = route.wait(at: now), now < deadline {
            return .settled(ask(row, min(moment, deadline), "Unreachable", questions: row.questions))
        }
        let standing = await inquiry.standing(of: way.id, since: reader.queued(row) ?? WallTime(milliseconds: 0))
        note(standing, of: route)
        let isPatient = row.questions < Relay.leastQuestions
        switch standing {
        case .accepted:
            metrics.resolved.increment()
            return .settled(final(row, .sent, nil, clock.now()))
        case .notTaken:
            return .notTaken
        case .underWay:
            // It came, and minutes later the service knows no more of it: that died with it in hand.
            guard isPatient else { return .unknown }
        case .unavailable:
            // Never sent again because nobody could be asked; but not asked for ever either.
            guard isPatient || now < deadline else { return .settled(final(row, .expired, "Uncertain", now)) }
        }
        let pause = configuration.rules.retry.pause(after: row.questions + 1, share: .random(in: 0...1))
        let next = clock.now() + pause
        let moment = now < deadline ? min(next, deadline) : next
        return .settled(ask(row, moment, "Uncertain", questions: row.questions + 1))
    }

    /// Tries the journals that were never asked, or that did not answer: an operator hears of a wrong address or token
    /// before a row depends on it.
    func watchJournals() async {
        while !Task.isCancelled {
            for route in routes.routes where route.isJournalUntried(at: clock.now()) {
                guard let inquiry = route.inquiry else { continue }
                let nobody = NotificationID(high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max))
                let standing = await inquiry.standing(of: nobody, since: clock.now() + .seconds(86_400))
                // The end is no failure.
                if !Task.isCancelled { note(standing, of: route) }
            }
            guard (try? await Task.sleep(for: configuration.progressPause)) != nil else { return }
        }
    }

    private func note(_ standing: JournalStanding, of route: Route) {
        guard let change = route.noteJournal(standing, at: clock.now()) else { return }
        let facts: Logger.Metadata = [
            "service": "\(route.name)", "console": "\(route.app.journal?.console ?? "")",
        ]
        switch change {
        case .broken(let why):
            logger.error(
                "the journal cannot be asked; rows that may have been sent wait",
                metadata: facts.merging(["why": "\(why)"]) { $1 }
            )
        case .mended: logger.notice("the journal answers", metadata: facts)
        }
    }
}
