import CoreMetrics
import Foundation
import HeraldModel
import NIOCore
import NIOPosix
import Synchronization
import Tracing

/// Makes a client, lends it, and ends it.
/// - Parameters:
///   - configuration: Where to, and as whom.
///   - body: What is done with the client; it is shut down when this returns or throws.
/// - Returns: What `body` returns.
/// - Throws: What ``ProviderClient/init(_:)`` or `body` throws.
public func withProviderClient<Result: Sendable>(
    _ configuration: ProviderConfiguration,
    _ body: (ProviderClient) async throws -> Result
) async throws -> Result {
    let client = try ProviderClient(configuration)
    do {
        let result = try await body(client)
        await client.shutdown()
        return result
    } catch {
        await client.shutdown()
        throw error
    }
}

/// Sends notifications to Herald, or to APNs, by the HTTP/2 API ("Sending notification requests to APNs").
///
/// Make one and keep it: it holds its connections open for as long as it lasts, and mends them. It may be used from any
/// number of tasks at a time; how many requests are under way is the service's to say, and the others wait. End it with
/// ``shutdown()``, once, after the last request.
public final class ProviderClient: Sendable {
    let configuration: ProviderConfiguration
    let metrics: ProviderMetrics
    private let tokens: ProviderTokenSource?
    private let dispatcher: Dispatcher
    private let clock: ProviderClock
    private let authority: String
    private let tracer: (any Tracer)?
    private let budget: Mutex<RetryBudget>

    /// Makes a client; connects with the first request.
    /// - Parameter configuration: Where to, and as whom.
    /// - Throws: ``ProviderError/Code/badCredential``, ``ProviderError/Code/badAuthority``.
    public convenience init(_ configuration: ProviderConfiguration) throws {
        try self.init(configuration, metrics: ProviderMetrics())
    }

    init(
        _ configuration: ProviderConfiguration,
        clock: ProviderClock = ProviderClock(),
        metrics: ProviderMetrics
    ) throws {
        let configuration = configuration.bounded
        self.configuration = configuration
        self.clock = clock
        self.metrics = metrics
        if case .key(let pem, let id, let team) = configuration.credential.kind {
            tokens = try ProviderTokenSource.shared(pem: pem, keyID: id, team: team)
        } else {
            tokens = nil
        }
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        authority = configuration.port == 443 ? host : "\(host):\(configuration.port)"
        let tracer = configuration.tracer ?? InstrumentationSystem.tracer
        self.tracer = tracer is NoOpTracer ? nil : tracer
        budget = Mutex(RetryBudget(configuration.retry))
        let connector = Connector(
            eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
            context: try ProviderTLS.context(configuration, protocols: ["h2"]),
            host: configuration.host,
            port: configuration.port,
            timeout: configuration.timeout
        )
        dispatcher = Dispatcher(connector: connector, configuration: configuration, metrics: metrics)
    }

    deinit {
        dispatcher.abandon()
    }

    /// Sends one notification and waits for the answer.
    ///
    /// What is repeated, and when, is ``ProviderConfiguration/retry``'s to say; every attempt has the same `apns-id`.
    /// - Parameter request: The notification.
    /// - Returns: The service's answer, acceptance or refusal.
    /// - Throws: ``ProviderError`` where there is no answer, which says whether the service may have the notification
    ///   all the same; `CancellationError`.
    public func send(_ request: PushRequest) async throws -> PushAnswer {
        try Self.check(request.payload, limit: request.pushType.maximumPayloadBytes)
        let id = request.id ?? .random()
        var head = self.head("POST", path: "/3/device/" + request.token.hex)
        request.write(to: &head, id: id)
        let order = Order(
            id: id,
            head: head,
            body: request.payload,
            answerLimit: PushAnswer.maximumBodyBytes,
            identifier: "apns-id",
            isNotification: true
        )
        return try await traced("apns send", pushType: request.pushType) { try await self.settle(order).answer }
    }

    /// Takes no further requests, waits for the answers to those in hand, and closes the connections.
    public func shutdown() async {
        await dispatcher.shutDown()
    }

    static func check(_ payload: [UInt8], limit: Int) throws {
        guard payload.count <= limit else {
            throw ProviderError(
                .badRequest,
                "the payload has \(payload.count) bytes, and at most \(limit) are taken: shorten it"
            )
        }
        guard !payload.isEmpty else { throw ProviderError(.badRequest, "the payload is empty: {} is the shortest") }
    }

    /// A header block with what every request has.
    func head(_ method: String, path: String) -> HeaderBlock {
        var head = HeaderBlock()
        head.add(":method", method)
        head.add(":scheme", "https")
        head.add(":authority", authority)
        head.add(":path", path, isIndexed: false)
        if configuration.explains { head.add("herald-explain", "1") }
        return head
    }

    /// One request, with all its attempts.
    struct Order: Sendable {
        let id: NotificationID
        let head: HeaderBlock
        let body: [UInt8]
        let answerLimit: Int
        /// The name of the field that holds its identifier.
        let identifier: String
        /// Whether it is one that a journal knows, and that may be repeated at its own risk; nothing about channels is.
        let isNotification: Bool
    }

    /// Makes attempts until one counts.
    /// - Returns: The answer, and as it came.
    /// - Throws: ``ProviderError``, `CancellationError`.
    func settle(_ order: Order) async throws -> (answer: PushAnswer, raw: Call.Answer) {
        if let name = order.head.malformed {
            let message = "the value of \(name) has a character that no header field can have"
            throw ProviderError(.badRequest, message, order.id)
        }
        let started = clock.now()
        defer { metrics.duration.recordNanoseconds((clock.now() - started).nanoseconds) }
        var policy = configuration.retry
        policy.repeatsAmbiguous = policy.repeatsAmbiguous && order.isNotification
        let resolver = order.isNotification ? configuration.resolver : nil
        var decision = RetryDecision(
            policy: policy,
            deadline: started + TimeAmount(configuration.totalTimeout)
        )
        // Whether an attempt that was repeated all the same may have arrived.
        var isInDoubt = false
        while true {
            try checkCancellation()
            let event: RetryDecision.Event
            let report: () throws -> (PushAnswer, Call.Answer)
            let token = try tokens?.token(wall: clock.wall(), now: clock.now())
            switch await attempt(order, token: token, deadline: decision.deadline) {
            case .answered(let answer, let raw, let link):
                guard case .refused(let refusal) = answer else {
                    count(metrics.accepted, earns: true)
                    return (answer, raw)
                }
                event = self.event(refusal, token: token, link: link)
                report = {
                    self.count(self.metrics.refused, earns: true)
                    return (answer, raw)
                }
            case .untouched:
                event = .untouched
                let error = ProviderError(.unreachable, "the service declines every stream for this request")
                report = { [isInDoubt] in throw self.failure(error, order, isInDoubt: isInDoubt) }
            case .failed(let error) where error.mayHaveArrived:
                switch await resolver?(order.id) ?? .unknown {
                case .accepted:
                    count(metrics.accepted, earns: true)
                    return (.accepted(PushReceipt(resolved: order.id)), Call.Answer())
                case .neverArrived:
                    // Asked for its identifier, whoever knows spoke of all attempts.
                    isInDoubt = false
                    event = .untouched
                case .unknown:
                    isInDoubt = true
                    event = .ambiguous
                }
                report = { [isInDoubt] in throw self.failure(error, order, isInDoubt: isInDoubt) }
            case .failed(let error):
                throw failure(error, order, isInDoubt: isInDoubt)
            case .cancelled:
                metrics.cancelled.increment()
                throw CancellationError()
            }
            let now = clock.now()
            let step = budget.withLock { budget in
                decision.next(event, now: now, chance: .random(in: 0...1), budget: &budget)
            }
            guard case .again(let pause) = step else { return try report() }
            metrics.repetitions.increment()
            if pause > .zero {
                try? await clock.sleep(pause)
            }
        }
    }

    /// How one attempt ended.
    private enum Attempt {
        case answered(PushAnswer, Call.Answer, link: Int)
        case untouched
        case failed(ProviderError)
        case cancelled
    }

    private func attempt(_ order: Order, token: String?, deadline: NIODeadline) async -> Attempt {
        switch await dispatcher.perform(call(for: order, token: token, deadline: deadline)) {
        case .answered(let raw, let link):
            do throws(ProviderError) {
                let answer = try PushAnswer(
                    status: raw.status,
                    field: raw.field,
                    body: raw.body,
                    identifier: order.identifier
                )
                return .answered(answer, raw, link: link)
            } catch {
                return .failed(error)
            }
        case .untouched: return .untouched
        case .failed(let error): return .failed(error)
        case .cancelled: return .cancelled
        }
    }

    /// What is thrown where there is no answer, and counted.
    private func failure(_ error: ProviderError, _ order: Order, isInDoubt: Bool) -> ProviderError {
        (isInDoubt ? metrics.ambiguous : metrics.unsent).increment()
        var error = ProviderError(error, order.id)
        error.mayHaveArrived = isInDoubt
        return error
    }

    private func checkCancellation() throws {
        guard Task.isCancelled else { return }
        metrics.cancelled.increment()
        throw CancellationError()
    }

    private func call(for order: Order, token: String?, deadline: NIODeadline) -> Call {
        var head = order.head
        if let token { head.add("authorization", "bearer " + token) }
        return Call(
            head: head,
            body: order.body,
            answerLimit: order.answerLimit,
            deadline: deadline,
            waitsForService: configuration.retry.waitsForService
        )
    }

    /// What a refusal means for the token and the connection that it came of.
    private func event(_ refusal: PushRefusal, token: String?, link: Int) -> RetryDecision.Event {
        switch refusal.reason.rejection {
        case .expiredProviderToken:
            guard let token, let tokens, tokens.expired(token, wall: clock.wall(), now: clock.now()) else { break }
            return .renewed
        case .tooManyProviderTokenUpdates:
            // The service counts by connection: this one takes no token any more.
            dispatcher.retire(link)
        default: break
        }
        return .refused(refusal)
    }

    private func count(_ counter: Counter, earns: Bool) {
        counter.increment()
        if earns { budget.withLock { $0.earn() } }
    }

    private func traced(
        _ name: String,
        pushType: PushType,
        _ body: @Sendable () async throws -> PushAnswer
    ) async throws -> PushAnswer {
        guard let tracer else { return try await body() }
        return try await tracer.withAnySpan(name, ofKind: .client) { span in
            span.attributes["server.address"] = configuration.host
            span.attributes["server.port"] = configuration.port
            span.attributes["apns.push_type"] = pushType.rawValue
            let answer = try await body()
            if case .refused(let refusal) = answer {
                span.attributes["apns.reason"] = refusal.reason.text
                span.setStatus(SpanStatus(code: .error, message: refusal.reason.text))
            }
            return answer
        }
    }
}

extension ProviderError {
    /// An error about one notification.
    init(_ error: ProviderError, _ id: NotificationID) {
        self = error
        self.id = id
    }

    init(_ code: Code, _ message: String, _ id: NotificationID) {
        self.init(ProviderError(code, message), id)
    }
}

/// Where a client reads the time; tests bring their own.
struct ProviderClock: Sendable {
    var wall: @Sendable () -> WallTime = { .present }
    var now: @Sendable () -> NIODeadline = { .now() }
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}

extension WallTime {
    /// What the machine's clock says.
    static var present: WallTime {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
