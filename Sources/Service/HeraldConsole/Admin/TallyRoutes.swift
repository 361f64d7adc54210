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

extension AdminWork {
    /// Registers the counting of lines.
    package mutating func register(tallies journal: any JournalCounting) {
        on(AdminAPI.tallies) { call in try await journal.tallies(try call.tallyQuestion(at: journal.now)) }
    }
}

extension Call {
    fileprivate func tallyQuestion(at now: WallTime) throws -> TallyQuestion {
        let group = try self(AdminAPI.tallyGroup) ?? .outcome
        var outcome = try self(AdminAPI.tallyOutcome)
        // A notification has several lines, but it was received once.
        if outcome == nil, group == .type || group == .priority { outcome = .received }
        return TallyQuestion(
            topic: try self(AdminAPI.tallyApp)?.name,
            environment: try self(Ask.environment),
            outcome: outcome,
            group: group,
            hours: try tallyHours(at: now)
        )
    }

    /// Whole hours from `from` through `to`; without them the last 24 hours, and this one.
    private func tallyHours(at now: WallTime) throws -> Range<Int64> {
        let from = try moment(AdminAPI.tallyFrom, at: now) ?? now - .seconds(86_400)
        let to = try moment(AdminAPI.tallyTo, at: now) ?? now
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

    private func moment(_ parameter: Parameter<String>, at now: WallTime) throws -> WallTime? {
        try self(parameter).map { text in
            guard let moment = SearchMoment.read(text, now: now) else {
                throw AdminError(.badRequest, "\(parameter.name) must be a time like \(SearchMoment.forms)")
            }
            return moment
        }
    }
}
