import CoreMetrics
import NIOCore
import NIOPosix

/// Makes a client, lends it, and ends it.
/// - Parameters:
///   - configuration: Where to, and as whom.
///   - body: What is done with the client; it is shut down when this returns or throws.
/// - Returns: What `body` returns.
/// - Throws: What ``BinaryClient/init(_:)`` or `body` throws.
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

/// Sends notifications by the binary interface, to services that have no HTTP/2 API ("Binary Provider API" in the Local and
/// Remote Notification Programming Guide).
///
/// The interface is silent about what it accepts. Each ``send(_:)`` returns all the same only when its fate is known: the
/// client writes what it is given, as it comes, and asks how far the service has come when the oldest has waited for
/// ``BinaryClientConfiguration/settleAfter``, or when ``BinaryClientConfiguration/maximumUnsettled`` are written. It asks
/// with a notification that no service can take, since the answer to that one proves that everything before it was
/// accepted. The service ends the connection with each answer, and the next notification opens another.
///
/// What stood behind a refused notification was discarded by the service, and is sent again by itself. Before the first
/// notification, and after a connection that ended without a word, the client asks first and writes then: a service that
/// does not take the certificate leaves nothing in doubt.
///
/// Make one and keep it. It may be used from any number of tasks at a time: send many at once, for one at a time takes
/// ``BinaryClientConfiguration/settleAfter`` for each. End it with ``shutdown()``, once, after the last request.
public final class BinaryClient: Sendable {
    private let configuration: BinaryClientConfiguration
    private let metrics: ProviderMetrics
    private let dispatcher: BinaryDispatcher

    /// Makes a client; connects with the first request.
    /// - Parameter configuration: Where to, and as whom.
    /// - Throws: ``ProviderError/Code/badCredential``, ``ProviderError/Code/badAuthority``.
    public convenience init(_ configuration: BinaryClientConfiguration) throws {
        try self.init(configuration, metrics: ProviderMetrics())
    }

    init(_ configuration: BinaryClientConfiguration, metrics: ProviderMetrics) throws {
        let configuration = configuration.bounded
        self.configuration = configuration
        self.metrics = metrics
        let connector = Connector(
            eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
            context: try ProviderTLS.context(configuration.provider),
            host: configuration.host,
            port: configuration.port,
            timeout: configuration.timeout
        )
        dispatcher = BinaryDispatcher(connector: connector, configuration: configuration, metrics: metrics)
    }

    deinit {
        dispatcher.abandon()
    }

    /// Sends one notification, and waits until it is known what became of it.
    /// - Parameter request: The notification.
    /// - Returns: What became of it; ``BinaryAnswer/uncertain(_:)`` where the service may have it and nobody can say.
    /// - Throws: ``ProviderError`` where the service certainly does not have it; `CancellationError`, where it may.
    public func send(_ request: BinaryRequest) async throws -> BinaryAnswer {
        let notification = try request.notification(limit: configuration.maximumPayloadBytes)
        try Task.checkCancellation()
        let started = NIODeadline.now()
        defer { metrics.duration.recordNanoseconds((NIODeadline.now() - started).nanoseconds) }
        let call = BinaryCall(notification, deadline: started + TimeAmount(configuration.totalTimeout))
        switch await dispatcher.perform(call) {
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

    /// Takes no further requests, waits until it is known what became of those in hand, and closes the connection.
    public func shutdown() async {
        await dispatcher.shutDown()
    }
}
