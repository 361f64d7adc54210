import HeraldModel
import HeraldWeb
import Hummingbird
import Synchronization

extension AdminWork {
    /// Registers sending; `send` answers in the order of the recipients.
    package mutating func register(send: @escaping @Sendable (SendOrder) async throws -> [SendAnswer]) {
        let pace = SendPace()
        respond(to: AdminAPI.send) { call in
            let order = call.body
            try order.environment.check(call.caller)
            guard let caller = call.caller, pace.admits(caller) else {
                throw AdminError(
                    .tooMany,
                    "the console takes \(SendPace.perSecond) orders a second of each caller: send again in a moment",
                    retryAfter: 1
                )
            }
            let answers = try await send(order)
            guard !order.isList, let answer = answers.first else {
                return try WebReply.json(SendAnswers(items: answers))
            }
            return try WebReply.json(answer)
        }
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
