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

/// The route of the numbers of journal lines.
struct TallyRoutes: Sendable {
    let journal: any JournalCounting

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("tallies", ["by", "app", "environment", "outcome", "from", "to"]) { request, _ in
            try WebReply.json(await journal.tallies(try question(request)))
        }
        routes.refuseOtherMethods()
    }

    private func question(_ request: Request) throws -> TallyQuestion {
        let group = try choice("by", request, TallyQuestion.Group.self) ?? .outcome
        var outcome = try choice("outcome", request, JournalOutcome.self)
        // A notification has several lines, but it was received once.
        if outcome == nil, group == .type || group == .priority { outcome = .received }
        return TallyQuestion(
            topic: try topic(request),
            environment: try PushEnvironment.ofQuery(request),
            outcome: outcome,
            group: group,
            hours: try hours(request)
        )
    }

    /// Whole hours from `from` through `to`; without them the last 24 hours, and this one.
    private func hours(_ request: Request) throws -> Range<Int64> {
        let now = journal.now
        let from = try moment("from", request, now) ?? now - .seconds(86_400)
        let to = try moment("to", request, now) ?? now
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

    private func moment(_ name: String, _ request: Request, _ now: WallTime) throws -> WallTime? {
        guard let text = text(name, request) else { return nil }
        guard let moment = SearchMoment.read(text, now: now) else {
            throw AdminError(.badRequest, "\(name) must be a time like \(SearchMoment.forms)")
        }
        return moment
    }

    private func topic(_ request: Request) throws -> String? {
        guard let text = text("app", request) else { return nil }
        guard let topic = Topic(text) else {
            throw AdminError(.badRequest, "app must be a topic, like com.example.app")
        }
        return topic.name
    }

    private func choice<Value: RawRepresentable & CaseIterable>(
        _ name: String,
        _ request: Request,
        _ type: Value.Type
    ) throws -> Value? where Value.RawValue == String {
        guard let text = text(name, request) else { return nil }
        guard let value = Value(rawValue: text) else {
            let values = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdminError(.badRequest, "\(name) must be one of \(values)")
        }
        return value
    }

    private func text(_ name: String, _ request: Request) -> String? {
        request.uri.queryParameters[name[...]].map { String($0) }
    }
}
