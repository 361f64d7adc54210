import CoreMetrics
import HeraldGateway
import HeraldModel
import InMemoryTracing
import MetricsTestKit
import Testing
import Tracing

@testable import HeraldProvider

/// Metrics, logs and traces of a client.
@Suite(.timeLimit(.minutes(10)))
struct `a client's metrics and spans` {
    @Test func `cover every notification, and contain no secret`() async throws {
        try await TestService.run { service in
            let (metrics, tracer) = (TestMetrics(), InMemoryTracer())
            var configuration = service.configuration
            configuration.tracer = tracer
            configuration.retry.firstPause = .milliseconds(1)
            let client = try ProviderClient(configuration, metrics: ProviderMetrics(factory: metrics))
            _ = try await client.send(service.request(0))
            service.start(.refuse(.unregistered, retryAfter: nil))
            let secret = service.request(1)
            _ = try await client.send(secret)
            var malformed = service.request(2)
            malformed.collapseID = "a\r\nb"
            await #expect(throws: ProviderError.self) { _ = try await client.send(malformed) }
            await client.shutdown()

            func count(_ outcome: String) throws -> Int64 {
                try metrics.expectCounter("herald_client_notifications_total", [("outcome", outcome)]).totalValue
            }
            #expect(try count("accepted") == 1)
            #expect(try count("refused") == 1)
            #expect(try count("unsent") == 0)
            #expect(try metrics.expectCounter("herald_client_connections_total").totalValue == 1)
            #expect(try metrics.expectTimer("herald_client_send_duration_seconds").values.count == 2)

            #expect(tracer.activeSpans.isEmpty)
            let spans = tracer.finishedSpans
            #expect(spans.map(\.operationName) == ["apns send", "apns send"])
            #expect(spans.last?.status?.message == "Unregistered")
            #expect(!"\(spans)".contains(secret.token.hex))
        }
    }
}
