package import HeraldModel
import HeraldWeb
import Hummingbird

/// Searches the journal, and reads the history of a notification.
package protocol JournalSearching: Sendable {
    /// - Throws: ``AdminError`` for a search that makes no sense, ``HeraldWeb/WebRefusal`` 503 if too many wait.
    func search(_ request: JournalSearchRequest) async throws -> JournalSearchAnswer

    /// The life of a notification; without the goal it waits for it.
    /// - Returns: nil if the journal has nothing about it.
    func life(
        of id: NotificationID,
        until goal: JournalLife.Goal,
        wait: Duration
    ) async throws -> JournalLife?
}

/// Routes of the search in the journal.
struct JournalRoutes: Sendable {
    /// The longest wait for a notification, in seconds.
    static let longestWait = 60.0

    let journal: any JournalSearching

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.post("journal/search", JournalSearchRequest.self) { search, _, _ in
            guard search.limit.map(JournalSearchRequest.limits.contains) ?? true else {
                let most = JournalSearchRequest.limits.upperBound
                throw AdminError(.badRequest, "limit must be a number from 1 to \(most)")
            }
            return try WebReply.json(await journal.search(search))
        }
        routes.get("journal/:id", ["until", "wait"]) { request, context in
            let text = try context.parameters.require("id")
            guard let id = NotificationID(text) else {
                throw AdminError(.badRequest, "the path must have an apns-id or apns-unique-id, a UUID")
            }
            let goal = try goal(request)
            guard let life = try await journal.life(of: id, until: goal, wait: try wait(request)) else {
                throw AdminError(.notFound, "nothing in the journal about \(id): it was too long ago, or never came")
            }
            return try WebReply.json(life)
        }
        routes.refuseOtherMethods()
    }

    private func goal(_ request: Request) throws -> JournalLife.Goal {
        guard let text = request.uri.queryParameters["until"] else { return .final }
        guard let goal = JournalLife.Goal(rawValue: String(text)) else {
            throw AdminError(.badRequest, "until must be final or delivered")
        }
        return goal
    }

    private func wait(_ request: Request) throws -> Duration {
        guard let text = request.uri.queryParameters["wait"] else { return .zero }
        guard let seconds = Double(text), (0...JournalRoutes.longestWait).contains(seconds) else {
            let most = Int(JournalRoutes.longestWait)
            throw AdminError(.badRequest, "wait must be a number of seconds from 0 to \(most)")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
