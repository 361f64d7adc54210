import Foundation
import HeraldWeb
import Hummingbird

/// The messages that a service caught, for operators and tests.
package protocol CaughtInbox: Sendable {
    var catching: CatchingState { get }

    /// Changes what is caught.
    /// - Throws: ``AdminError`` where everybody can reach the service.
    func setCatch(_ request: CatchRequest) throws -> CatchingState

    /// Matching messages, newest first, once there are as many as the question says, or its wait is over.
    func caught(_ question: CaughtQuestion) async throws -> CaughtAnswer

    /// Removes matching messages.
    /// - Returns: Their number.
    func removeCaught(_ query: CaughtQuery) async throws -> Int
}

/// Routes of what is caught.
struct CaughtRoutes: Sendable {
    static let limit = 1...1000
    static let defaultLimit = 100
    /// The longest wait for a message, in seconds.
    static let longestWait = 60.0

    let inbox: any CaughtInbox
    let waits: CallerShares

    init(inbox: any CaughtInbox, connections: Int) {
        self.inbox = inbox
        waits = CallerShares(limit: connections / 2, share: 2, what: "requests wait for messages")
    }

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("caught", ["q", "limit", "count", "until", "wait"]) { request, context in
            var question = CaughtQuestion(
                try query(request) ?? CaughtQuery(""),
                limit: try number("limit", request) ?? CaughtRoutes.defaultLimit
            )
            question.count = try number("count", request) ?? 1
            question.until = try query(request, "until")
            question.wait = try wait(request)
            guard question.wait > .zero else { return try WebReply.json(await inbox.caught(question)) }
            let leave = try waits.take(context.caller)
            defer { leave() }
            return try WebReply.json(await context.whileIn { [question] in try await inbox.caught(question) })
        }
        routes.delete("caught", ["q"]) { request, _ in
            try WebReply.json(
                CaughtRemoval(deleted: try await inbox.removeCaught(try query(request) ?? CaughtQuery("")))
            )
        }
        routes.get("caught/:id") { _, context in
            let id = try context.parameters.require("id")
            guard UUID(uuidString: id) != nil else {
                throw AdminError(.badRequest, "the path must have an apns-id or apns-unique-id, a UUID")
            }
            let found = try await inbox.caught(CaughtQuestion(try CaughtQuery("id:\(id)"), limit: 1))
            guard let entry = found.items.first else {
                throw AdminError(.notFound, "no message with the identifier \(id) is caught, or not any more")
            }
            return try WebReply.json(entry)
        }
        routes.put("catch", CatchRequest.self) { wanted, _, _ in
            guard wanted.minutes.map(CatchRequest.minutesRange.contains) ?? true else {
                throw AdminError(
                    .badRequest,
                    "minutes must be a number from 1 to \(CatchRequest.minutesRange.upperBound)"
                )
            }
            return try WebReply.json(try inbox.setCatch(wanted))
        }
        routes.refuseOtherMethods()
    }

    /// `?q=…`, in which a plus is a space, as forms and most libraries write it; nil without it.
    private func query(_ request: Request, _ name: String = "q") throws -> CaughtQuery? {
        let parameters = (request.uri.query ?? "").utf8.split(separator: UInt8(ascii: "&"))
        guard let raw = parameters.first(where: { $0.starts(with: "\(name)=".utf8) })?.dropFirst(name.utf8.count + 1)
        else {
            return nil
        }
        let spaced = raw.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        guard let text = String(decoding: spaced, as: UTF8.self).removingPercentEncoding else {
            throw AdminError(.badRequest, "\(name) is not percent-encoded UTF-8")
        }
        return try CaughtQuery(text, name)
    }

    /// `limit` or `count`; nil without it.
    private func number(_ name: Substring, _ request: Request) throws -> Int? {
        guard let text = request.uri.queryParameters[name] else { return nil }
        guard let number = Int(text), CaughtRoutes.limit.contains(number) else {
            throw AdminError(.badRequest, "\(name) must be a number from 1 to \(CaughtRoutes.limit.upperBound)")
        }
        return number
    }

    private func wait(_ request: Request) throws -> Duration {
        guard let text = request.uri.queryParameters["wait"] else { return .zero }
        guard let seconds = Double(text), (0...CaughtRoutes.longestWait).contains(seconds) else {
            throw AdminError(.badRequest, "wait must be a number of seconds from 0 to \(Int(CaughtRoutes.longestWait))")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
