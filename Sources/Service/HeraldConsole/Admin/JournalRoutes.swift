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

extension AdminWork {
    /// Registers the lines of one notification, device or topic.
    package mutating func respond(
        to journal: AdminOperation<NoContent, [JournalEntry]>,
        with answer: @escaping @Sendable (_ question: JournalQuestion, _ limit: Int) async throws -> JournalAnswer
    ) {
        respond(to: journal) { call in
            let asked = try [AdminAPI.journalID, AdminAPI.journalDevice, AdminAPI.journalTopic].compactMap {
                try call($0)
            }
            let limit = try call(AdminAPI.journalLimit) ?? AdminAPI.journalDefault
            guard asked.count == 1, let question = asked.first else {
                throw AdminError(
                    .badRequest,
                    "give exactly one of id, device and topic; POST /v1/journal/search takes a search"
                )
            }
            let found = try await answer(question, limit)
            var fields: [String: String] = [:]
            fields[JournalAnswer.completeSinceField] = found.completeSince
            if !found.missingNodes.isEmpty {
                fields[JournalAnswer.missingNodesField] = found.missingNodes.joined(separator: ", ")
            }
            return try WebReply.json(found.lines, fields: fields)
        }
    }

    /// Registers the search in the journal, and the history of a notification; `connections` is the console's limit.
    package mutating func register(journal: any JournalSearching, connections: Int) {
        let searches = CallerShares(limit: 8, share: 2, what: "searches of the journal")
        // Fewer than the journal's followers, among whom are the pages.
        let waits = CallerShares(limit: min(32, connections / 2), share: 2, what: "requests wait for a notification")
        on(AdminAPI.searchJournal) { call in
            guard call.body.limit.map(JournalSearchRequest.limits.contains) ?? true else {
                let most = JournalSearchRequest.limits.upperBound
                throw AdminError(.badRequest, "limit must be a number from 1 to \(most)")
            }
            let leave = try searches.take(call.caller)
            defer { leave() }
            return try await journal.search(call.body)
        }
        on(AdminAPI.notificationLife) { call in
            let id = try call.path(Ask.notification)
            let goal = try call(AdminAPI.lifeGoal) ?? .final
            let life: JournalLife?
            if let wait = try call(AdminAPI.lifeWait), wait > .zero {
                let leave = try waits.take(call.caller)
                defer { leave() }
                life = try await call.context.whileIn { try await journal.life(of: id, until: goal, wait: wait) }
            } else {
                life = try await journal.life(of: id, until: goal, wait: .zero)
            }
            guard let life else {
                throw AdminError(.notFound, "nothing in the journal about \(id): it was too long ago, or never came")
            }
            return life
        }
    }
}
