import HeraldGateway
import HeraldModel
import NIOCore
import Testing

@testable import HeraldProvider

/// Connections over real sockets.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct `a client's connections` {
    @Test func `a silent dead connection is detected and replaced`() async throws {
        try await TestService.run { service in
            let proxy = try await FreezingProxy(to: service.port)
            var configuration = service.configuration
            configuration.port = proxy.port
            configuration.connections.pingBusyAfter = .milliseconds(200)
            // More than a machine that is busy with other tests takes for an answer.
            configuration.connections.pingTimeout = .seconds(20)
            configuration.retry.firstPause = .milliseconds(10)
            configuration.resolver = { service.ledger.accepted[$0] == nil ? .neverArrived : .accepted }
            try await withProviderClient(configuration) { client in
                guard case .accepted = try await client.send(service.request(0)) else {
                    Issue.record("the first was not accepted")
                    return
                }
                proxy.freeze()
                // Its own time limit would end in an error: only the unanswered ping brings another connection.
                guard case .accepted = try await client.send(service.request(1)) else {
                    Issue.record("the second was not accepted")
                    return
                }
                // A machine that pauses may miss another ping.
                #expect(proxy.connections >= 2)
            }
            // After such a pause the resolver may have answered before the service took the request.
            #expect(proxy.connections > 2 || service.ledger.accepted.values.allSatisfy { $0 == 1 })
            #expect(service.ledger.accepted.count == 2)
            try await proxy.close()
        }
    }

    @Test func `opens more connections when streams run out, up to the maximum`() async throws {
        try await TestService.run(streams: 1) { service in
            let proxy = try await FreezingProxy(to: service.port)
            service.start(.latency(.milliseconds(300) ... .milliseconds(300)))
            var configuration = service.configuration
            configuration.port = proxy.port
            configuration.connections.maximum = 3
            configuration.connections.growAfter = .milliseconds(50)
            let sent = try await withProviderClient(configuration) { client in
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<20 {
                        group.addTask {
                            var count = 0
                            // Few requests wait at a time where their tasks wait for a processor.
                            repeat {
                                _ = try await client.send(service.request(number))
                                count += 1
                            } while proxy.connections < 3
                            return count
                        }
                    }
                    return try await group.reduce(0) { $0 + $1 }
                }
            }
            #expect(proxy.connections == 3)
            #expect(service.ledger.accepted.count == sent)
            try await proxy.close()
        }
    }

    @Test func `a cancelled send ends at once, queued or in flight`() async throws {
        try await TestService.run(streams: 1) { service in
            service.start(.silence(isAccepted: false))
            try await withProviderClient(service.configuration) { client in
                await withDiscardingTaskGroup { group in
                    for number in 0..<2 {
                        group.addTask {
                            await #expect(throws: CancellationError.self) {
                                _ = try await client.send(service.request(number))
                            }
                        }
                    }
                    // The first has reached the service once it is drilled; the second waits for its stream.
                    while service.drills.reports.first?.hits == 0 { await Task.yield() }
                    group.cancelAll()
                }
            }
        }
    }

    @Test func `the queue is bounded, and closed after shutdown`() async throws {
        try await TestService.run(streams: 1) { service in
            service.start(.silence(isAccepted: false))
            var configuration = service.configuration
            configuration.maximumWaiting = 1
            let client = try ProviderClient(configuration)
            await withTaskGroup(of: ProviderError.Code?.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        do {
                            _ = try await client.send(service.request(number))
                            return nil
                        } catch {
                            return (error as? ProviderError)?.code
                        }
                    }
                }
                // The others are on the four connections, and in the queue.
                for _ in 0..<15 {
                    let code: ProviderError.Code? = await group.next() ?? nil
                    #expect(code == .overloaded)
                }
                group.cancelAll()
            }
            await client.shutdown()
            let error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
            #expect(error?.code == .shutDown)
            configuration.totalTimeout = .milliseconds(200)
            try await withProviderClient(configuration) { client in
                let late = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
                #expect(late?.code == .timedOut)
            }
        }
    }

    @Test func `waits for a service that is not up yet, within the time limit`() async throws {
        try await TestService.run { service in
            let proxy = try await FreezingProxy(to: 1)
            var configuration = service.configuration
            configuration.port = proxy.port
            configuration.totalTimeout = .seconds(2)
            try await proxy.close()
            try await withProviderClient(configuration) { client in
                var error: ProviderError?
                repeat {
                    let start = ContinuousClock.now
                    error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
                    #expect(ContinuousClock.now - start >= .seconds(2))
                    // On a busy machine no connect may have failed until then.
                } while error?.code == .timedOut
                #expect(error?.code == .unreachable && error?.mayHaveArrived == false)
            }
        }
    }

    @Test func `an untrusted service is reported at once`() async throws {
        try await TestService.run { service in
            var configuration = service.configuration
            configuration.authorities = nil
            try await withProviderClient(configuration) { client in
                let error = await #expect(throws: ProviderError.self) { _ = try await client.send(service.request(0)) }
                #expect(error?.code == .untrusted)
            }
        }
    }

    @Test func `a value that no header field may contain is not sent`() async throws {
        try await TestService.run { service in
            try await withProviderClient(service.configuration) { client in
                var request = service.request(0)
                for collapseID in ["a\r\nb", "a\tb", "a\u{85}", "\(Unicode.Scalar(0xFDD0) ?? "x")", " a", ""] {
                    request.collapseID = collapseID
                    let error = await #expect(throws: ProviderError.self) { _ = try await client.send(request) }
                    #expect(error?.code == .badRequest)
                    #expect(error?.description.contains("apns-collapse-id") == true)
                }
                request.collapseID = nil
                request.payload = [UInt8](repeating: 0x20, count: 4097)
                let long = await #expect(throws: ProviderError.self) { _ = try await client.send(request) }
                #expect(long?.code == .badRequest)
            }
        }
    }
}
