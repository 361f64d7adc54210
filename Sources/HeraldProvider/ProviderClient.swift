import CoreMetrics
import Foundation
import HeraldModel
import NIOCore
import NIOPosix
import Synchronization
import Tracing

/// Makes a client, passes it to `body`, and shuts it down when `body` returns or throws.
/// - Parameters:
///   - configuration: Host, port, credential and limits.
///   - body: Uses the client. The client is not usable after `body` ends.
/// - Returns: The result of `body`.
/// - Throws: The errors of ``ProviderClient/init(_:)`` and of `body`.
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

/// Sends notifications to Herald or APNs over the HTTP/2 API ("Sending notification requests to APNs").
///
/// Keep one client for as long as you send: it keeps its connections open and reconnects when one is lost. Any number of
/// tasks may use it at once. The service limits how many requests are in flight; further requests wait in the client.
/// Call ``shutdown()`` once, after the last request.
public final class ProviderClient: Sendable {
    let configuration: ProviderConfiguration
    let metrics: ProviderMetrics
    private let tokens: ProviderTokenSource?
    private let calls: CallInbox<Call>
    private let clock: ProviderClock
    private let authority: String
    private let tracer: (any Tracer)?
    private let budget: Mutex<RetryBudget>

    /// Makes a client; the first request opens the first connection.
    /// - Parameter configuration: Host, port, credential and limits. Values out of range are moved into it.
    /// - Throws: ``ProviderError/Code/badCredential`` or ``ProviderError/Code/badAuthority``.
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
        let dispatcher = Dispatcher(connector: connector, configuration: configuration, metrics: metrics)
        calls = CallInbox(on: connector.eventLoop) { dispatcher.take($0) }
    }

    deinit {
        calls.abandon()
    }

    /// Sends one notification and waits for the answer.
    ///
    /// ``ProviderConfiguration/retry`` decides what is sent again. Every attempt has the same `apns-id`.
    /// - Parameter request: The notification. Its payload has 1 to 4,096 bytes, 5,120 for VoIP.
    /// - Returns: The service's answer: accepted or refused.
    /// - Throws: ``ProviderError`` if there is no answer; its ``ProviderError/mayHaveArrived`` says whether the service may
    ///   have the notification. `CancellationError` if the task is cancelled; the service may have the notification.
    public func send(_ request: PushRequest) async throws -> PushAnswer {
        try Self.check(request.payload, limit: request.pushType.maximumPayloadBytes)
        let id = request.id ?? .random()
        var head = self.head("POST", path: "/3/device/" + request.token.hex)
        request.write(to: &head, id: id)
        let submission = Submission(
            id: id,
            head: head,
            body: request.payload,
            answerLimit: PushAnswer.maximumBodyBytes,
            identifier: "apns-id",
            isNotification: true
        )
        return try await traced("apns send", pushType: request.pushType) { try await self.submit(submission).answer }
    }

    /// Refuses new requests, waits for the answers to the current ones, and closes the connections.
    public func shutdown() async {
        await calls.shutDown()
    }

    static func check(_ payload: [UInt8], limit: Int) throws {
        guard payload.count <= limit else {
            throw ProviderError(
                .badRequest,
                "the payload has \(payload.count) bytes, the limit is \(limit): shorten it"
            )
        }
        guard !payload.isEmpty else { throw ProviderError(.badRequest, "the payload is empty: send at least {}") }
    }

    /// The header fields that every request has.
    func head(_ method: String, path: String) -> HeaderBlock {
        var head = HeaderBlock()
        head.add(":method", method)
        head.add(":scheme", "https")
        head.add(":authority", authority)
        head.add(":path", path, isIndexed: false)
        if configuration.explains { head.add("herald-explain", "1") }
        return head
    }

    /// One request with all its attempts.
    struct Submission: Sendable {
        let id: NotificationID
        let head: HeaderBlock
        let body: [UInt8]
        let answerLimit: Int
        /// The header field with its identifier: `apns-id` or `apns-request-id`.
        let identifier: String
        /// Whether it is a notification or broadcast.
        ///
        /// Channel management is neither resolved nor retried when ambiguous.
        let isNotification: Bool
    }

    /// Makes attempts until one is final.
    /// - Returns: The answer, parsed and raw.
    /// - Throws: ``ProviderError``, `CancellationError`.
    func submit(_ submission: Submission) async throws -> (answer: PushAnswer, raw: Call.Answer) {
        if let name = submission.head.malformed {
            let message = "the value of \(name) has a character that no header field may contain"
            throw ProviderError(.badRequest, message, submission.id)
        }
        let started = clock.now()
        defer { metrics.duration.recordNanoseconds((clock.now() - started).nanoseconds) }
        var policy = configuration.retry
        policy.repeatsAmbiguous = policy.repeatsAmbiguous && submission.isNotification
        let resolver = submission.isNotification ? configuration.resolver : nil
        var decision = RetryDecision(
            policy: policy,
            deadline: started + TimeAmount(configuration.totalTimeout)
        )
        // Whether an earlier attempt may have arrived.
        var isInDoubt = false
        while true {
            try checkCancellation()
            let event: RetryDecision.Event
            let report: () throws -> (PushAnswer, Call.Answer)
            let token = try tokens?.token(wall: clock.wall(), now: clock.now())
            switch await attempt(submission, token: token, deadline: decision.deadline) {
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
                let error = ProviderError(.unreachable, "the service refuses every stream for this request")
                report = { [isInDoubt] in throw self.failure(error, submission, isInDoubt: isInDoubt) }
            case .failed(let error) where error.mayHaveArrived:
                switch await resolver?(submission.id) ?? .unknown {
                case .accepted:
                    count(metrics.accepted, earns: true)
                    return (.accepted(PushReceipt(resolved: submission.id)), Call.Answer())
                case .neverArrived:
                    // The resolver was asked for the identifier, so its answer covers all attempts.
                    isInDoubt = false
                    event = .untouched
                case .unknown:
                    isInDoubt = true
                    event = .ambiguous
                }
                report = { [isInDoubt] in throw self.failure(error, submission, isInDoubt: isInDoubt) }
            case .failed(let error):
                throw failure(error, submission, isInDoubt: isInDoubt)
            case .cancelled:
                metrics.cancelled.increment()
                throw CancellationError()
            }
            let now = clock.now()
            let step = budget.withLock { budget in
                decision.next(event, now: now, chance: .random(in: 0...1), budget: &budget)
            }
            guard case .again(let pause) = step else { return try report() }
            metrics.retries.increment()
            if pause > .zero {
                try? await clock.sleep(pause)
            }
        }
    }

    /// Outcome of one attempt.
    private enum Attempt {
        case answered(PushAnswer, Call.Answer, link: Int)
        case untouched
        case failed(ProviderError)
        case cancelled
    }

    private func attempt(_ submission: Submission, token: String?, deadline: NIODeadline) async -> Attempt {
        switch await calls.perform(call(for: submission, token: token, deadline: deadline)) {
        case .answered(let raw, let link):
            do throws(ProviderError) {
                let answer = try PushAnswer(
                    status: raw.status,
                    field: raw.field,
                    body: raw.body,
                    identifier: submission.identifier
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

    /// Counts a failed request and adds its identifier to the error.
    private func failure(_ error: ProviderError, _ submission: Submission, isInDoubt: Bool) -> ProviderError {
        (isInDoubt ? metrics.ambiguous : metrics.unsent).increment()
        var error = ProviderError(error, submission.id)
        error.mayHaveArrived = isInDoubt
        return error
    }

    private func checkCancellation() throws {
        guard Task.isCancelled else { return }
        metrics.cancelled.increment()
        throw CancellationError()
    }

    private func call(for submission: Submission, token: String?, deadline: NIODeadline) -> Call {
        var head = submission.head
        if let token { head.add("authorization", "bearer " + token) }
        return Call(
            head: head,
            body: submission.body,
            answerLimit: submission.answerLimit,
            deadline: deadline,
            waitsForService: configuration.retry.waitsForService
        )
    }

    /// Applies a refusal to the provider token and the connection, and returns it as an event.
    private func event(_ refusal: PushRefusal, token: String?, link: Int) -> RetryDecision.Event {
        switch refusal.reason.known {
        case .expiredProviderToken:
            guard let token, let tokens, tokens.expired(token, wall: clock.wall(), now: clock.now()) else { break }
            return .renewed
        case .tooManyProviderTokenUpdates:
            // The service counts token updates by connection, so this connection accepts no other token.
            calls.retire(link: link)
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
    /// Adds the identifier of a notification to an error.
    init(_ error: ProviderError, _ id: NotificationID) {
        self = error
        self.id = id
    }

    init(_ code: Code, _ message: String, _ id: NotificationID) {
        self.init(ProviderError(code, message), id)
    }
}

/// The clocks of a client; tests replace them.
struct ProviderClock: Sendable {
    var wall: @Sendable () -> WallTime = { .present }
    var now: @Sendable () -> NIODeadline = { .now() }
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}

extension WallTime {
    /// The time of the machine's clock.
    static var present: WallTime {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
