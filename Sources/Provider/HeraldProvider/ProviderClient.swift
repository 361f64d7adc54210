import Foundation
package import HeraldModel
import NIOCore
import Synchronization
import Tracing

/// Makes a client, passes it to `body`, and shuts it down when `body` returns or throws.
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
    let tokens: ProviderTokenSource?
    let calls: CallInbox<Call>
    let clock: ProviderClock
    let tracer: (any Tracer)?
    let budget: Mutex<RetryBudget>
    private let authority: String
    private let identifiers = Mutex(IdentifierSource())

    /// Makes a client; the first request opens the first connection.
    /// - Parameter configuration: Host, port, credential and limits. Values out of range are moved into it.
    /// - Throws: ``ProviderError/Code/badCredential`` or ``ProviderError/Code/badAuthority``.
    public convenience init(_ configuration: ProviderConfiguration) throws {
        try self.init(configuration, metrics: ProviderMetrics())
    }

    /// Makes a client whose provider tokens have the time of another clock than the machine's.
    package convenience init(_ configuration: ProviderConfiguration, wall: @escaping @Sendable () -> WallTime) throws {
        try self.init(configuration, clock: ProviderClock(wall: wall), metrics: ProviderMetrics())
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
        authority = HostPort(host: configuration.host, port: configuration.port).authority(schemePort: 443)
        let tracer = configuration.tracer ?? InstrumentationSystem.tracer
        self.tracer = tracer is NoOpTracer ? nil : tracer
        budget = Mutex(RetryBudget(configuration.retry))
        let connector = try Connector(configuration, protocols: ["h2"])
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
        let execution = try execution(of: request)
        return try await finish(execution, from: .again(after: .zero)).get()
    }

    /// Sends many notifications, and reports each outcome as soon as it is known.
    ///
    /// It needs no task for each. All of them start at once, so ``ProviderConfiguration/maximumWaiting`` limits their
    /// number. It returns after the last outcome.
    /// - Parameters:
    ///   - requests: The notifications.
    ///   - report: Receives each outcome once, with the index of its notification in `requests`: what ``send(_:)`` would
    ///     return or throw. Several threads may call it at once, and it must not block.
    public func send(
        _ requests: [PushRequest],
        report: @escaping @Sendable (Int, Result<PushAnswer, any Error>) -> Void
    ) async {
        let batch = RequestBatch(count: requests.count)
        @Sendable func end(_ index: Int, _ outcome: Result<PushAnswer, any Error>) {
            report(index, outcome)
            batch.hasEnded()
        }
        @Sendable func goOn(_ index: Int, _ execution: RequestExecution, _ step: Step) {
            if case .end(let reply) = step {
                end(index, ended(execution, reply))
            } else {
                batch.add(RequestBatch.Remainder(index: index, execution: execution, step: step))
            }
        }
        var attempts: [Call] = []
        attempts.reserveCapacity(requests.count)
        for (index, request) in requests.enumerated() {
            do {
                let execution = try execution(of: request)
                do {
                    let call = try call(for: execution)
                    call.settle = { goOn(index, execution, self.step(execution, after: $0, of: call)) }
                    attempts.append(call)
                } catch {
                    goOn(index, execution, .end(.failure(error)))
                }
            } catch {
                end(index, .failure(error))
            }
        }
        await withTaskCancellationHandler { [attempts] in
            calls.start(attempts)
            await withDiscardingTaskGroup { group in
                while let remainder = await batch.next() {
                    group.addTask {
                        end(remainder.index, await self.finish(remainder.execution, from: remainder.step))
                    }
                }
            }
        } onCancel: { [attempts] in
            calls.cancel(attempts)
        }
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
    func head(_ method: String, path: String) -> RequestHeader {
        head(method) { $0.append(contentsOf: path.utf8) }
    }

    private func head(_ method: String, path: (inout [UInt8]) -> Void) -> RequestHeader {
        var head = RequestHeader()
        head.add(":method", method)
        head.add(":scheme", "https")
        head.add(":authority", authority)
        head.add(":path", isIndexed: false, path)
        if configuration.explains { head.add("herald-explain", "1") }
        return head
    }

    private func execution(of request: PushRequest) throws -> RequestExecution {
        try Self.check(request.payload, limit: request.pushType.maximumPayloadBytes)
        let id = request.id ?? newIdentifier()
        var head = head("POST") { path in
            path.append(contentsOf: "/3/device/".utf8)
            path.append(contentsOf: request.token.hex.utf8)
        }
        request.write(to: &head, id: id)
        let content = RequestContent(
            id: id,
            head: head,
            body: request.payload,
            identifier: "apns-id",
            isNotification: true
        )
        return try execution(content, span: span(request.pushType))
    }

    /// An identifier for a request that has none.
    func newIdentifier() -> NotificationID {
        identifiers.withLock { $0.identifier() }
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
