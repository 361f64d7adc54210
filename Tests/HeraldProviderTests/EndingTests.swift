import HeraldGateway
import HeraldModel
import Logging
import MetricsTestKit
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HeraldProvider

/// Errors of a send without an answer, and shutdown.
@Suite(.timeLimit(.minutes(10)))
struct `a send without an answer` {
    @Test func `may still have arrived when a retry certainly has not`() async throws {
        try await TestService.run { service in
            service.start(.drop)
            var configuration = service.configuration
            configuration.retry.repeatsAmbiguous = true
            let metrics = TestMetrics()
            let client = Mutex<ProviderClient?>(nil)
            var clock = ProviderClock()
            // The repetition is refused by the client itself.
            clock.sleep = { _ in await client.withLock { $0 }?.shutdown() }
            let made = try ProviderClient(
                configuration,
                clock: clock,
                metrics: ProviderMetrics(factory: metrics)
            )
            client.withLock { $0 = made }
            let error = await #expect(throws: ProviderError.self) { _ = try await made.send(service.request(0)) }
            client.withLock { $0 = nil }
            #expect(error?.code == .shutDown && error?.mayHaveArrived == true)
            #expect(try outcomes("ambiguous", metrics) == 1)
        }
    }

    @Test func `has not arrived if the resolver says so, though it is not resent`() async throws {
        try await TestService.run { service in
            service.start(.drop)
            var configuration = service.configuration
            configuration.retry.attempts = 1
            configuration.resolver = { _ in .neverArrived }
            let metrics = TestMetrics()
            let client = try ProviderClient(configuration, metrics: ProviderMetrics(factory: metrics))
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
            #expect(error?.mayHaveArrived == false && error?.id != nil)
            #expect(try outcomes("unsent", metrics) == 1)
            await client.shutdown()
        }
    }

    @Test func `is not blamed on a certificate that was accepted before`() async throws {
        try await TestService.run { service in
            try await withProviderClient(service.configuration) { client in
                _ = try await client.send(service.request(0))
                service.start(.drop)
                let error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(1)) }
                #expect(error?.message.hasSuffix("closed the connection before it answered") == true)
                #expect(error?.mayHaveArrived == true)
            }
        }
    }

    @Test func `is counted when it was cancelled between two attempts`() async throws {
        try await TestService.run { service in
            service.start(.refuse(.serviceUnavailable, retryAfter: nil))
            let (metrics, pauses) = (TestMetrics(), AsyncStream.makeStream(of: Void.self))
            var clock = ProviderClock()
            clock.sleep = { _ in
                pauses.continuation.yield()
                // A pause that ends with its task alone.
                for await _ in AsyncStream<Void>.makeStream().stream {}
                try Task.checkCancellation()
            }
            let client = try ProviderClient(
                service.configuration,
                clock: clock,
                metrics: ProviderMetrics(factory: metrics)
            )
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await #expect(throws: CancellationError.self) { _ = try await client.send(service.request(0)) }
                }
                for await _ in pauses.stream { break }
                group.cancelAll()
            }
            #expect(try outcomes("cancelled", metrics) == 1)
            await client.shutdown()
        }
    }

    @Test func `is reported for each notification of a batch whose task is cancelled`() async throws {
        try await TestService.run { service in
            service.start(.silence(isAccepted: true))
            let client = try ProviderClient(service.configuration)
            let requests =
                (0..<20).map { service.request($0) } + [
                    PushRequest(token: service.request(0).token, topic: nil, payload: [])
                ]
            let outcomes = AsyncStream.makeStream(of: (place: Int, outcome: Result<PushAnswer, any Error>).self)
            await withDiscardingTaskGroup { group in
                group.addTask { await client.send(requests) { outcomes.continuation.yield(($0, $1)) } }
                while service.ledger.accepted.count < 20 { await Task.yield() }
                group.cancelAll()
            }
            outcomes.continuation.finish()
            var ends: [Int: Result<PushAnswer, any Error>] = [:]
            for await (place, outcome) in outcomes.stream { ends[place] = outcome }
            #expect(ends.count == 21)
            for (place, outcome) in ends {
                #expect(throws: (any Error).self) { try outcome.get() }
                if case .failure(let error) = outcome {
                    #expect(place == 20 ? error is ProviderError : error is CancellationError)
                }
            }
            await client.shutdown()
        }
    }

    @Test func `does not wait for a silent address at shutdown`() async throws {
        // One whose queue of connections is full does not answer the next.
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1)
            .serverChannelOption(.autoRead, value: false)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = server.localAddress?.port ?? 0
        var fillers: [any Channel] = []
        for _ in 0..<2 {
            fillers.append(
                try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: port).get()
            )
        }
        try await TestService.run { service in
            var configuration = service.configuration
            (configuration.host, configuration.port) = ("127.0.0.1", port)
            configuration.totalTimeout = .milliseconds(200)
            let client = try ProviderClient(configuration)
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
            #expect(error?.code == .timedOut && error?.mayHaveArrived == false)
            let start = ContinuousClock.now
            await client.shutdown()
            // An attempt to connect may take ten minutes. Four of them are left to a busy machine.
            #expect(ContinuousClock.now - start < .seconds(240))
        }
        for filler in fillers { try await filler.close() }
        try await server.close()
    }

    @Test func `does not change the count of other clients' connections`() async throws {
        try await TestService.run { service in
            let metrics = TestMetrics()
            let clients = try (0..<2).map { _ in
                try ProviderClient(service.configuration, metrics: ProviderMetrics(factory: metrics))
            }
            for client in clients { _ = try await client.send(service.request(0)) }
            let open = try metrics.expectMeter("herald_client_connections_open")
            #expect(open.lastValue == 2)
            await clients[0].shutdown()
            #expect(open.lastValue == 1)
            await clients[1].shutdown()
            #expect(open.lastValue == 0)
        }
    }

    private func outcomes(_ outcome: String, _ metrics: TestMetrics) throws -> Int64 {
        try metrics.expectCounter("herald_client_notifications_total", [("outcome", outcome)]).totalValue
    }
}
