import Foundation
import HeraldModel
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

extension CaughtInbox {
    /// The present state of catching in words, for the health of the service.
    package var notes: [String] {
        let state = catching
        let what: String
        switch state.topics {
        case .off: return []
        case .all: what = "all apps"
        case .topics(let topics): what = topics.map(\.name).sorted().joined(separator: ", ")
        }
        let until = state.until.map { "until \($0)" } ?? "until it stops"
        return ["payloads of \(what) are caught in memory \(until): not for production"]
    }
}

extension AdminWork {
    /// Registers the work on what is caught; half of the console's connections at most wait for it.
    package mutating func register(inbox: any CaughtInbox, connections: Int) {
        let waits = CallerShares(limit: connections / 2, share: 2, what: "requests wait for messages")
        on(AdminAPI.caught) { call in
            let question = CaughtQuestion(
                query: try call.caughtQuery() ?? CaughtQuery(""),
                limit: try call(AdminAPI.caughtLimit) ?? 100,
                count: try call(AdminAPI.caughtCount) ?? 1,
                until: try call.caughtQuery("until"),
                wait: try call(AdminAPI.caughtWait) ?? .zero
            )
            guard question.wait > .zero else { return try await inbox.caught(question) }
            let leave = try waits.take(call.caller)
            defer { leave() }
            return try await call.context.whileIn { try await inbox.caught(question) }
        }
        on(AdminAPI.removeCaught) { call in
            CaughtRemoval(deleted: try await inbox.removeCaught(try call.caughtQuery() ?? CaughtQuery("")))
        }
        on(AdminAPI.caughtMessage) { call in
            let id = try call.path(Ask.notification)
            let found = try await inbox.caught(CaughtQuestion(query: try CaughtQuery("id:\(id)"), limit: 1))
            guard let entry = found.items.first else {
                throw AdminError(.notFound, "no message with the identifier \(id) is caught, or not any more")
            }
            return entry
        }
        on(AdminAPI.setCatch) { call in
            guard call.body.minutes.map(CatchRequest.minutesRange.contains) ?? true else {
                throw AdminError(
                    .badRequest,
                    "minutes must be a number from 1 to \(CatchRequest.minutesRange.upperBound)"
                )
            }
            return try inbox.setCatch(call.body)
        }
    }
}

extension Call {
    /// `?q=…`, in which a plus is a space, as forms and most libraries write it; nil without it.
    fileprivate func caughtQuery(_ name: String = "q") throws -> CaughtQuery? {
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
}
