import CoreMetrics
import HeraldModel

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

    /// How often a journal is asked for the same notification, with growing pauses, before it is sent again.
    private static let maximumInquiries = 8

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
            return .settled(later(row, min(moment, deadline), "Unreachable", counts: false, uncertain: true))
        }
        switch await inquiry.standing(of: way.id, since: reader.queued(row) ?? WallTime(milliseconds: 0)) {
        case .accepted:
            metrics.resolved.increment()
            return .settled(final(row, .sent, nil, clock.now()))
        case .notTaken:
            return .notTaken
        case .underWay, .unavailable:
            // Not sent again before it is known; but neither kept for ever, if the journal does not answer.
            guard row.attempts < Relay.maximumInquiries else { return .unknown }
            let pause = configuration.rules.retry.pause(after: row.attempts + 1, share: .random(in: 0...1))
            return .settled(later(row, clock.now() + pause, "Uncertain", counts: true, uncertain: true))
        }
    }
}
