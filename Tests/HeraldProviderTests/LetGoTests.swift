import MetricsTestKit
import Synchronization
import Testing

@testable import HeraldProvider

/// A client that nobody keeps and nobody shuts down.
@Suite(.timeLimit(.minutes(10))) struct LetGoTests {
    private func send(_ service: TestService, _ metrics: TestMetrics) async throws -> [PushAnswer] {
        let client = try ProviderClient(service.configuration, metrics: ProviderMetrics(factory: metrics))
        let answers = Mutex<[PushAnswer]>([])
        await client.send([service.request(0), service.request(1)]) { _, outcome in
            if case .success(let answer) = outcome { answers.withLock { $0.append(answer) } }
        }
        return answers.withLock { $0 }
    }

    @Test func `closes its connections after the last answer`() async throws {
        try await TestService.run { service in
            let metrics = TestMetrics()
            #expect(try await send(service, metrics).count == 2)
            let open = try metrics.expectMeter("herald_client_connections_open")
            #expect(open.values.contains(1))
            while open.lastValue != 0 { await Task.yield() }
        }
    }
}
