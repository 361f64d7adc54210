import CoreMetrics
import HeraldModel
import NIOCore
import Synchronization
import Tracing

/// The content of a request, which is the same in each attempt.
struct RequestContent: Sendable {
    let id: NotificationID
    let head: RequestHeader
    let body: [UInt8]
    /// The longest body of an answer, in bytes.
    var answerLimit = PushAnswer.maximumBodyBytes
    /// The header field with its identifier: `apns-id` or `apns-request-id`.
    let identifier: String
    /// Whether it is a notification or broadcast.
    ///
    /// Channel management is neither resolved nor retried when ambiguous.
    let isNotification: Bool
}

/// One request: its content, and what its attempts have shown so far.
// Unchecked: one owner at a time. While an attempt is under way it is the event loop, else the sender.
final class RequestExecution: @unchecked Sendable {
    let content: RequestContent
    let started: NIODeadline
    let span: (any Span)?
    fileprivate var decision: RetryDecision
    /// The value of `authorization` of the last attempt.
    fileprivate var authorization: String?
    /// Whether an attempt may have arrived.
    fileprivate var isInDoubt = false
    /// The raw answer to channel management.
    fileprivate(set) var answer = Call.Answer()

    fileprivate init(_ content: RequestContent, span: (any Span)?, started: NIODeadline, decision: RetryDecision) {
        self.content = content
        self.span = span
        self.started = started
        self.decision = decision
    }
}

/// The attempts of a request, until its outcome is known.
extension ProviderClient {
    /// The error is a ``ProviderError`` or a `CancellationError`.
    typealias Reply = Result<PushAnswer, any Error>

    /// Consequence of an attempt.
    enum Step: Sendable {
        case end(Reply)
        /// Another attempt.
        case again(after: Duration)
        /// The resolver may know whether the request has arrived.
        case resolve(ProviderError)
    }

    /// Prepares a request for its first attempt.
    /// - Throws: ``ProviderError/Code/badRequest``.
    func execution(
        _ content: RequestContent,
        span: @autoclosure () -> (any Span)? = nil
    ) throws -> RequestExecution {
        if let fault = content.head.fault { throw ProviderError(.badRequest, fault, content.id) }
        var policy = configuration.retry
        policy.repeatsAmbiguous = policy.repeatsAmbiguous && content.isNotification
        let started = clock.now()
        return RequestExecution(
            content,
            // After the checks: nothing would end the span of a request that they refuse.
            span: span(),
            started: started,
            decision: RetryDecision(policy: policy, deadline: started + TimeAmount(configuration.totalTimeout))
        )
    }

    /// Makes the next attempt of a request.
    /// - Throws: The error of signing a provider token.
    func call(for execution: RequestExecution) throws -> Call {
        execution.authorization = try tokens?.authorization(wall: clock.wall(), now: clock.now())
        return Call(
            head: execution.content.head,
            authorization: execution.authorization,
            body: execution.content.body,
            answerLimit: execution.content.answerLimit,
            deadline: execution.decision.deadline,
            waitsForService: configuration.retry.waitsForService
        )
    }

    /// Makes attempts, and pauses between them, until one is final.
    func finish(_ execution: RequestExecution, from first: Step) async -> Reply {
        var step = first
        while true {
            switch step {
            case .end(let reply): return ended(execution, reply)
            case .resolve(let error):
                step = self.step(execution, await configuration.resolver?(execution.content.id) ?? .unknown, of: error)
            case .again(let pause):
                if pause > .zero { try? await clock.sleep(pause) }
                if Task.isCancelled {
                    step = cancelled()
                } else {
                    do {
                        let call = try call(for: execution)
                        step = self.step(execution, after: await calls.perform(call), of: call)
                    } catch {
                        step = .end(.failure(error))
                    }
                }
            }
        }
    }

    /// Decides what follows an attempt.
    func step(_ execution: RequestExecution, after outcome: Call.Outcome, of call: Call) -> Step {
        switch outcome {
        case .answered(let link):
            if !execution.content.isNotification { execution.answer = call.answer }
            do throws(ProviderError) {
                let answer = try PushAnswer(
                    status: call.answer.status,
                    field: { call.answer.field($0) },
                    body: call.answer.body,
                    identifier: execution.content.identifier
                )
                return step(execution, answer, link: link)
            } catch {
                return step(execution, failed: error)
            }
        case .untouched:
            let error = ProviderError(.unreachable, "the service refuses every stream for this request")
            return step(execution, .untouched, or: error)
        case .failed(let error): return step(execution, failed: error)
        case .cancelled: return cancelled()
        }
    }

    private func step(_ execution: RequestExecution, _ answer: PushAnswer, link: Int) -> Step {
        guard case .refused(let refusal) = answer else {
            count(metrics.accepted)
            return .end(.success(answer))
        }
        return step(execution, event(refusal, execution.authorization, link: link)) {
            count(metrics.refused)
            return .success(answer)
        }
    }

    private func step(_ execution: RequestExecution, failed error: ProviderError) -> Step {
        guard error.mayHaveArrived else { return .end(failure(execution, error)) }
        guard configuration.resolver != nil, execution.content.isNotification else {
            return step(execution, .unknown, of: error)
        }
        return .resolve(error)
    }

    /// Decides what follows an attempt without an answer.
    private func step(_ execution: RequestExecution, _ fate: PushFate, of error: ProviderError) -> Step {
        switch fate {
        case .accepted:
            count(metrics.accepted)
            return .end(.success(.accepted(PushReceipt(resolved: execution.content.id))))
        case .neverArrived:
            // The resolver was asked for the identifier, so its answer covers all attempts.
            execution.isInDoubt = false
            return step(execution, .untouched, or: error)
        case .unknown:
            execution.isInDoubt = true
            return step(execution, .ambiguous, or: error)
        }
    }

    private func step(_ execution: RequestExecution, _ event: RetryDecision.Event, or error: ProviderError) -> Step {
        step(execution, event) { failure(execution, error) }
    }

    /// Decides between another attempt and the end.
    private func step(_ execution: RequestExecution, _ event: RetryDecision.Event, or end: () -> Reply) -> Step {
        let now = clock.now()
        let step = budget.withLock { budget in
            execution.decision.next(event, now: now, chance: .random(in: 0...1), budget: &budget)
        }
        guard case .again(let pause) = step else { return .end(end()) }
        metrics.retries.increment()
        return .again(after: pause)
    }

    /// Applies a refusal to the provider token and the connection, and returns it as an event.
    private func event(_ refusal: PushRefusal, _ authorization: String?, link: Int) -> RetryDecision.Event {
        switch refusal.reason.known {
        case .expiredProviderToken:
            guard let authorization, let tokens,
                tokens.expired(authorization, wall: clock.wall(), now: clock.now())
            else { break }
            return .renewed
        case .tooManyProviderTokenUpdates:
            // The service counts token updates by connection, so this connection accepts no other token.
            calls.retire(link: link)
        default: break
        }
        return .refused(refusal)
    }

    private func cancelled() -> Step {
        metrics.cancelled.increment()
        return .end(.failure(CancellationError()))
    }

    // MARK: - Observation

    /// Notes the end of a request.
    func ended(_ execution: RequestExecution, _ reply: Reply) -> Reply {
        metrics.duration.recordNanoseconds((clock.now() - execution.started).nanoseconds)
        guard let span = execution.span else { return reply }
        switch reply {
        case .success(.refused(let refusal)):
            span.attributes["apns.reason"] = refusal.reason.text
            span.setStatus(SpanStatus(code: .error, message: refusal.reason.text))
        case .success: break
        case .failure(let error): span.recordError(error)
        }
        span.end()
        return reply
    }

    /// A span for a notification; nil without a tracer.
    func span(_ pushType: PushType) -> (any Span)? {
        guard let tracer else { return nil }
        let span = tracer.startAnySpan("apns send", ofKind: .client)
        span.attributes["server.address"] = configuration.host
        span.attributes["server.port"] = configuration.port
        span.attributes["apns.push_type"] = pushType.rawValue
        return span
    }

    /// Counts a final answer, which earns a share of a retry.
    private func count(_ counter: Counter) {
        counter.increment()
        budget.withLock { $0.earn() }
    }

    /// Counts a failed request and adds its identifier to the error.
    private func failure(_ execution: RequestExecution, _ error: ProviderError) -> Reply {
        (execution.isInDoubt ? metrics.ambiguous : metrics.unsent).increment()
        var error = ProviderError(error, execution.content.id)
        error.mayHaveArrived = execution.isInDoubt
        return .failure(error)
    }
}
