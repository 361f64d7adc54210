import HeraldMailbox
package import HeraldModel
import HeraldWeb
import Hummingbird

/// Numbers of journal lines.
package protocol JournalCounting: Sendable {
    /// The time of the service.
    var now: WallTime { get }

    /// - Throws: ``HeraldWeb/WebRefusal`` 503 if too many wait.
    func tallies(_ question: TallyQuestion) async throws -> TallyAnswer
}

/// The work of counting lines.
package struct TallyRoutes: Sendable {
    private let journal: any JournalCounting

    package init(journal: any JournalCounting) {
        self.journal = journal
    }

    package func register(_ api: inout AdminWork) {
        api.on(AdminAPI.tallies) { call in try await journal.tallies(try question(call)) }
    }

    private func question(_ call: Call<NoContent>) throws -> TallyQuestion {
        let group = try call(AdminAPI.tallyGroup) ?? .outcome
        var outcome = try call(AdminAPI.tallyOutcome)
        // A notification has several lines, but it was received once.
        if outcome == nil, group == .type || group == .priority { outcome = .received }
        return TallyQuestion(
            topic: try call(AdminAPI.tallyApp)?.name,
            environment: try call(Ask.environment),
            outcome: outcome,
            group: group,
            hours: try hours(call)
        )
    }

    /// Whole hours from `from` through `to`; without them the last 24 hours, and this one.
    private func hours(_ call: Call<NoContent>) throws -> Range<Int64> {
        let now = journal.now
        let from = try moment(AdminAPI.tallyFrom, call, now) ?? now - .seconds(86_400)
        let to = try moment(AdminAPI.tallyTo, call, now) ?? now
        guard from < to else { throw AdminError(.badRequest, "from must be before to") }
        let (first, last) = (TallyKey.hour(of: from), TallyKey.hour(of: to - .milliseconds(1)))
        guard last - first < TallyQuestion.mostHours else {
            let days = TallyQuestion.mostDays
            throw AdminError(
                .badRequest,
                "from and to must be at most \(days) days apart: ask for each month by itself"
            )
        }
        return first..<(last + 1)
    }

    private func moment(_ parameter: Parameter<String>, _ call: Call<NoContent>, _ now: WallTime) throws -> WallTime? {
        try call(parameter).map { text in
            guard let moment = SearchMoment.read(text, now: now) else {
                throw AdminError(.badRequest, "\(parameter.name) must be a time like \(SearchMoment.forms)")
            }
            return moment
        }
    }
}
