import HeraldModel
import HeraldWeb
import Hummingbird
import Synchronization

/// Sends notifications through the provider API of this service, as any provider does.
package protocol ConsoleSender: Sendable {
    /// Sends a notification to each recipient.
    /// - Returns: The answers, in the order of the recipients.
    /// - Throws: ``AdminError`` or ``HeraldWeb/WebRefusal`` if nothing can be sent.
    func send(_ order: SendOrder) async throws -> [SendAnswer]
}

/// The route that sends.
struct SendRoutes: Sendable {
    let sender: any ConsoleSender
    let pace = SendPace()

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.post("send", SendOrder.self) { order, _, context in
            try order.environment.check(context.caller)
            guard pace.admits() else {
                throw AdminError(
                    .tooMany,
                    "the console takes \(SendPace.perSecond) orders a second: send again in a moment",
                    retryAfter: 1
                )
            }
            let answers = try await sender.send(order)
            guard !order.isList, let answer = answers.first else {
                return try WebReply.json(SendAnswers(items: answers))
            }
            return try WebReply.json(answer)
        }
        routes.refuseOtherMethods()
    }
}

/// Bounds the orders of all callers together.
final class SendPace: Sendable {
    static let perSecond = 10

    private let limit = RateLimit(burst: perSecond, interval: .seconds(1) / perSecond)
    private let kept = Mutex(Int64.min)
    private let start = ContinuousClock.now

    func admits() -> Bool {
        let now = Int64((ContinuousClock.now - start) / .microseconds(1))
        return kept.withLock { kept in
            guard limit.wait(kept, at: now) == 0 else { return false }
            kept = limit.used(kept, at: now)
            return true
        }
    }
}
