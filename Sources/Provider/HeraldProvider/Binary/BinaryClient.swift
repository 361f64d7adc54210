import CoreMetrics
import NIOCore

/// Makes a client, passes it to `body`, and shuts it down when `body` returns or throws.
/// - Throws: The errors of ``BinaryClient/init(_:)`` and of `body`.
public func withBinaryClient<Result: Sendable>(
    _ configuration: BinaryClientConfiguration,
    _ body: (BinaryClient) async throws -> Result
) async throws -> Result {
    let client = try BinaryClient(configuration)
    do {
        let result = try await body(client)
        await client.shutdown()
        return result
    } catch {
        await client.shutdown()
        throw error
    }
}

/// Sends notifications over the binary interface, for services without an HTTP/2 API ("Binary Provider API" in the Local
/// and Remote Notification Programming Guide).
///
/// The interface does not acknowledge notifications. ``send(_:)`` still returns only when the outcome is known: the
/// client pipelines notifications, and then writes a checkpoint, a notification that every service refuses. The refusal
/// of the checkpoint proves that the service accepted everything before it. The client writes a checkpoint when the
/// oldest notification has waited for ``BinaryClientConfiguration/confirmAfter``, or when
/// ``BinaryClientConfiguration/maximumUnconfirmed`` are written. The service closes the connection with its answer, and
/// the next notification opens another.
///
/// A service discards everything behind a refused notification; the client resends it. The first connection, and each
/// one after a connection that ended without an answer, starts with a checkpoint: a service that refuses the certificate
/// leaves no notification in doubt.
///
/// Keep one client for as long as you send. Any number of tasks may use it at once. Send many at a time, because a single
/// notification takes ``BinaryClientConfiguration/confirmAfter``. Call ``shutdown()`` once, after the last request.
public final class BinaryClient: Sendable {
    private let configuration: BinaryClientConfiguration
    private let metrics: ProviderMetrics
    private let calls: CallInbox<BinaryCall>

    /// Makes a client; the first request opens the first connection.
    /// - Parameter configuration: Host, port, certificate and limits. Values out of range are moved into it.
    /// - Throws: ``ProviderError/Code/badCredential`` or ``ProviderError/Code/badAuthority``.
    public convenience init(_ configuration: BinaryClientConfiguration) throws {
        try self.init(configuration, metrics: ProviderMetrics())
    }

    init(_ configuration: BinaryClientConfiguration, metrics: ProviderMetrics) throws {
        let configuration = configuration.bounded
        self.configuration = configuration
        self.metrics = metrics
        let connector = try Connector(configuration.provider)
        let dispatcher = BinaryDispatcher(connector: connector, configuration: configuration, metrics: metrics)
        calls = CallInbox(on: connector.eventLoop) { dispatcher.take($0) }
    }

    deinit {
        calls.abandon()
    }

    /// Sends one notification, and waits until its outcome is known.
    /// - Parameter request: The notification.
    /// - Returns: The outcome; ``BinaryAnswer/uncertain(_:)`` if the service may have the notification.
    /// - Throws: ``ProviderError`` if the service does not have it. `CancellationError` if the task is cancelled; the service
    ///   may have it.
    public func send(_ request: BinaryRequest) async throws -> BinaryAnswer {
        let notification = try request.notification(limit: configuration.maximumPayloadBytes)
        try Task.checkCancellation()
        let started = NIODeadline.now()
        defer { metrics.duration.recordNanoseconds((NIODeadline.now() - started).nanoseconds) }
        let call = BinaryCall(notification, deadline: started + TimeAmount(configuration.totalTimeout))
        switch await calls.perform(call) {
        case .answered(let answer):
            switch answer {
            case .accepted: metrics.accepted.increment()
            case .refused: metrics.refused.increment()
            case .uncertain: metrics.ambiguous.increment()
            }
            return answer
        case .failed(let error):
            metrics.unsent.increment()
            throw error
        case .cancelled:
            metrics.cancelled.increment()
            throw CancellationError()
        }
    }

    /// Refuses new requests, waits for the outcome of the current ones, and closes the connection.
    public func shutdown() async {
        await calls.shutDown()
    }
}
