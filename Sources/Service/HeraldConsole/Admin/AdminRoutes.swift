import Foundation
import HeraldModel
import HeraldWeb
import Hummingbird
import NIOCore

/// Routes of the admin API.
package struct AdminRoutes: Sendable {
    /// Range and default of the number of entries in one answer.
    package static let journalLimit = 1...10_000
    package static let journalDefault = 1000
    /// Maximum length of a body, in bytes.
    static let maximumBodyBytes = 1 << 16

    let administration: any Administration

    func add(to group: RouterGroup<ConsoleContext>) {
        DrillRoutes(administration: administration).add(to: group)
        DeviceRoutes(administration: administration).add(to: group)
        ProviderRoutes(administration: administration).add(to: group)
        ChannelRoutes(administration: administration).add(to: group)
        var routes = WebRoutes(group)
        routes.get("status") { _, _ in try WebReply.json(await administration.fullStatus()) }
        routes.get("journal", ["id", "device", "topic", "limit"]) { request, _ in
            let (question, limit) = try journalQuestion(request)
            let answer = try await administration.journal(question, limit: limit)
            let missing = answer.missingNodes.joined(separator: ", ")
            return try WebReply.json(
                answer.lines,
                fields: missing.isEmpty ? [:] : [JournalAnswer.missingNodesField: missing]
            )
        }
        routes.post("trust/reload") { _, _ in
            try await administration.reloadTrust()
            return try WebReply.json(await administration.fullStatus())
        }
        routes.get("clock") { _, _ in try WebReply.json(administration.clock) }
        routes.post("clock/advance", ClockAdvance.self) { advance, _, _ in
            // Keeps the arithmetic far from its limits.
            guard advance.seconds.isFinite, abs(advance.seconds) <= 3_155_760_000 else {
                throw AdminError(.badRequest, "seconds must be a number within a hundred years")
            }
            return try WebReply.json(
                await administration.advanceClock(by: .milliseconds(Int64(advance.seconds * 1000)))
            )
        }
        routes.post("clock/accept") { _, _ in try WebReply.json(await administration.acceptClock()) }
        routes.refuseOtherMethods()
    }

    func add(_ control: [ControlRoute], to routes: RouterGroup<ConsoleContext>) {
        for route in control {
            routes.post("control/\(route.name)") { request, _ in
                WebReply.json(
                    bytes: try await route.answer(
                        try await WebBody.bytes(of: request, limit: AdminRoutes.maximumBodyBytes)
                    )
                )
            }
        }
    }

    /// `?id=ID`, `?device=ID` or `?topic=ID`, and `&limit=N`.
    private func journalQuestion(_ request: Request) throws -> (JournalQuestion, Int) {
        let parameters = request.uri.queryParameters
        let limit = try limit(request)
        var questions: [JournalQuestion] = []
        if let text = parameters["id"] {
            guard let id = NotificationID(text) else {
                throw AdminError(.badRequest, "id must be an apns-id or apns-unique-id: a UUID like 2f7ca8f4-….")
            }
            questions.append(.notification(id))
        }
        if let text = parameters["device"] {
            guard let device = DeviceID(text) else {
                throw AdminError(.badRequest, "device must be a device's identifier")
            }
            questions.append(.device(device))
        }
        if let text = parameters["topic"] {
            guard let topic = Topic(text) else {
                throw AdminError(.badRequest, "topic must be a topic like com.example.app")
            }
            questions.append(.topic(topic))
        }
        guard questions.count == 1, let question = questions.first else {
            throw AdminError(
                .badRequest,
                "give exactly one of id, device and topic; POST /v1/journal/search takes a search"
            )
        }
        return (question, limit)
    }

    /// `&limit=N`: maximum number of entries.
    private func limit(_ request: Request) throws -> Int {
        guard let text = request.uri.queryParameters["limit"] else { return AdminRoutes.journalDefault }
        guard let number = Int(text), AdminRoutes.journalLimit.contains(number) else {
            throw AdminError(.badRequest, "limit must be a number from 1 to \(AdminRoutes.journalLimit.upperBound)")
        }
        return number
    }
}
