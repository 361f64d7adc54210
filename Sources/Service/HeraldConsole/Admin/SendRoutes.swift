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
            guard let caller = context.caller, pace.admits(caller) else {
                throw AdminError(
                    .tooMany,
                    "the console takes \(SendPace.perSecond) orders a second of each caller: send again in a moment",
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

/// Bounds the orders of each caller.
final class SendPace: Sendable {
    static let perSecond = 10

    private let limiter = Mutex(
        KeyedRateLimiter<ConsoleMember>(burst: perSecond, interval: .seconds(1) / perSecond, capacity: 1024)
    )
    private let start = ContinuousClock.now

    func admits(_ caller: ConsoleCaller) -> Bool {
        let now = WallTime(milliseconds: (ContinuousClock.now - start).wholeMilliseconds)
        return limiter.withLock { limiter in
            guard limiter.wait(caller.member, at: now) == nil else { return false }
            limiter.take(caller.member, at: now)
            return true
        }
    }
}
