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
            let missing = found.missingNodes.joined(separator: ", ")
            return try WebReply.json(
                found.lines,
                fields: missing.isEmpty ? [:] : [JournalAnswer.missingNodesField: missing]
            )
        }
    }

    /// Registers the search in the journal, and the history of a notification.
    package mutating func register(journal: any JournalSearching) {
        on(AdminAPI.searchJournal) { call in
            guard call.body.limit.map(JournalSearchRequest.limits.contains) ?? true else {
                let most = JournalSearchRequest.limits.upperBound
                throw AdminError(.badRequest, "limit must be a number from 1 to \(most)")
            }
            return try await journal.search(call.body)
        }
        on(AdminAPI.notificationLife) { call in
            let id = try call.path(Ask.notification)
            let (goal, wait) = (try call(AdminAPI.lifeGoal), try call(AdminAPI.lifeWait))
            guard let life = try await journal.life(of: id, until: goal ?? .final, wait: wait ?? .zero) else {
                throw AdminError(.notFound, "nothing in the journal about \(id): it was too long ago, or never came")
            }
            return life
        }
    }
}
